// A second opinion on the oracle: one thread a pixel, which works out the pixels that its own follows from anew.
// The filter is the one for luma of ITU-T H.264, 8.7.2.3, with bS below 4.

struct Strength { int alpha, beta, tc; };

__device__ int limited(int value, int low, int high) { return value < low ? low : value > high ? high : value; }

// What a pixel at `place` along a line becomes; `at(i)` is the line's pixel i as it was, `length` the count of them.
template <class Line>
__device__ int filtered(Line at, int place, int length, Strength s)
{
    const bool after = place % 8 == 0;                                      // it is q0 of the border before it
    const int border = after ? place : place + 1;                           // q0's place
    if (border % 8 != 0 || border == 0 || border == length) return at(place);
    const int p1 = at(border - 2), p0 = at(border - 1), q0 = at(border), q1 = at(border + 1);
    if (abs(p0 - q0) >= s.alpha || abs(p1 - p0) >= s.beta || abs(q1 - q0) >= s.beta) return at(place);
    const int delta = limited((q0 - p0) * 4 + (p1 - q1) + 4 >> 3, -s.tc, s.tc);
    return limited(after ? q0 - delta : p0 + delta, 0, 255);
}

extern "C" __global__ void reference(
    const unsigned char* picture, unsigned char* smooth, int down, int across, int alpha, int beta, int tc)
{
    const int column = blockIdx.x * blockDim.x + threadIdx.x;
    const int row = blockIdx.y * blockDim.y + threadIdx.y;
    const int height = 8 * down, width = 8 * across;
    if (row >= height || column >= width) return;
    const Strength s = {alpha, beta, tc};
    auto across_vertical_borders = [=](int r) {                             // the pixel of this column in row r
        const unsigned char* line = picture + (long long)r * width;
        return filtered([=](int c) { return (int)line[c]; }, column, width, s);
    };
    smooth[(long long)row * width + column] = (unsigned char)filtered(across_vertical_borders, row, height, s);
}
