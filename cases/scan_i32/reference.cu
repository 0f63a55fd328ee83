// A second opinion on the oracle: one thread adds one value after the other, as plain as can be. Unsigned sums wrap around.

extern "C" __global__ void reference(const int* x, int* y, int n)
{
    unsigned sum = 0;
    for (int i = 0; i < n; ++i) {
        sum += (unsigned)x[i];
        y[i] = (int)sum;
    }
}
