// A second opinion on the oracle: one thread a block, which tries every place in order; as plain as can be.

extern "C" __global__ void search(
    const unsigned char* picture, const unsigned char* reference, int* best, int* place, int down, int across)
{
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    const int r = blockIdx.y;
    if (c >= across) return;
    const int width = 16 * across, broad = width + 16;                      // of the picture's rows, of the reference's
    int least = 0, where = -1;
    for (int dy = 0; dy < 17; ++dy)
        for (int dx = 0; dx < 17; ++dx) {
            int sad = 0;
            for (int i = 0; i < 16; ++i)
                for (int j = 0; j < 16; ++j)
                    sad += abs(picture[(long long)(16 * r + i) * width + 16 * c + j]
                               - reference[(long long)(16 * r + dy + i) * broad + 16 * c + dx + j]);
            if (where >= 0 && sad >= least) continue;                       // the lowest place wins a tie
            least = sad;
            where = 17 * dy + dx;
        }
    best[r * across + c] = least;
    place[r * across + c] = where;
}
