// libcufft: transforms by their definition, axis by axis.
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "driver.h"

#define API extern "C" __attribute__((visibility("default")))

namespace {

typedef std::complex<long double> Complex;
enum Type { c2c = 0x29, r2c = 0x2a, c2r = 0x2c, z2z = 0x69, d2z = 0x6a, z2d = 0x6c };
enum { ok = 0, invalid_plan = 1, invalid_type = 3, execution_failed = 6 };
const size_t work_size = 512;

// The layout of one side: the extents with gaps between the axes, the step of the last axis, that of the batch
struct Layout { std::vector<int> extents; long step, batch; };

struct Plan {
    std::vector<int> shape;
    int type, batch;
    Layout in, out;
    void *stream, *work;
    std::shared_ptr<bool> alive = std::make_shared<bool>(true);  // until the plan is destroyed
};

std::map<int, std::shared_ptr<Plan>> plans;

long offset(const Layout &layout, const std::vector<int> &index) {
    long at = 0;
    for (size_t i = 0; i < index.size(); ++i) at = at * (i ? layout.extents[i] : 1) + index[i];
    return at * layout.step;
}

// Call a function with all indices of a shape
template <typename Function> void each(const std::vector<int> &shape, Function function) {
    std::vector<int> index(shape.size());
    for (long left = 1; left;) {
        for (int n : shape) if (!n) return;
        function(index);
        left = 0;
        for (int i = (int)shape.size() - 1; i >= 0 && !left; --i) {
            if (++index[i] < shape[i]) left = 1;
            else index[i] = 0;
        }
    }
}

void transform(std::vector<Complex> &x, const std::vector<int> &shape, int sign) {
    long inner = 1;
    for (int axis = (int)shape.size() - 1; axis >= 0; --axis) {
        long n = shape[axis];
        std::vector<Complex> roots(n), line(n);
        for (long k = 0; k < n; ++k) {
            roots[k] = std::polar(1.0L, sign * 2 * 3.14159265358979323846264338327950288L * k / n);
            if (2 * k == n) roots[k] = -1;  // exactly: a real spectrum has no imaginary part there
        }
        for (size_t start = 0; start < x.size(); ++start) {
            if (start / inner % n) continue;
            for (long k = 0; k < n; ++k) {
                line[k] = 0;
                for (long j = 0; j < n; ++j) line[k] += x[start + j * inner] * roots[j * k % n];
            }
            for (long k = 0; k < n; ++k) x[start + k * inner] = line[k];
        }
        inner *= n;
    }
}

template <typename T> void execute(const Plan &plan, const T *source, T *target, int sign) {
    bool from_real = plan.type == r2c || plan.type == d2z, to_real = plan.type == c2r || plan.type == z2d;
    std::vector<int> half = plan.shape;
    half.back() = half.back() / 2 + 1;
    long size = 1;
    for (int n : plan.shape) size *= n;
    for (long b = 0; b < plan.batch; ++b) {
        std::vector<Complex> x(size);
        const T *in = source + b * plan.in.batch * (from_real ? 1 : 2);
        T *out = target + b * plan.out.batch * (to_real ? 1 : 2);
        long at = 0;
        each(plan.shape, [&](const std::vector<int> &index) {
            std::vector<int> from = index;
            bool mirrored = to_real && index.back() >= half.back();
            if (mirrored)  // the other half of a Hermitian array
                for (size_t i = 0; i < from.size(); ++i) from[i] = (plan.shape[i] - index[i]) % plan.shape[i];
            long position = offset(plan.in, from);
            Complex value = from_real ? Complex(in[position]) : Complex(in[2 * position], in[2 * position + 1]);
            if (to_real && (index.back() == 0 || 2 * index.back() == plan.shape.back()) && plan.shape.size() == 1) value.imag(0);
            x[at++] = mirrored ? std::conj(value) : value;
        });
        transform(x, plan.shape, sign);
        at = 0;
        each(plan.shape, [&](const std::vector<int> &index) {
            Complex value = x[at++];
            if (from_real && index.back() >= half.back()) return;
            long position = offset(plan.out, index);
            if (to_real) out[position] = (T)value.real();
            else out[2 * position] = (T)value.real(), out[2 * position + 1] = (T)value.imag();
        });
    }
}

template <typename T> int run(const char *name, int handle, void *in, void *out, int sign) {
    auto found = plans.find(handle);
    if (found == plans.end()) return invalid_plan;
    auto plan = found->second;
    return cuda_host_submit(name, plan->stream, new Work([=] {
        if (!*plan->alive) return cuda_host_fail((name + std::string(" uses a plan that was destroyed")).c_str());
        if (plan->work) memset(plan->work, 0xEE, work_size);  // shows if its memory is in use for something else
        execute<T>(*plan, (const T *)in, (T *)out, sign);
    })) ? execution_failed : ok;
}

}  // namespace

API int cufftCreate(int *handle) {
    static int last = 0;
    plans[*handle = ++last] = std::make_shared<Plan>();
    return ok;
}
API int cufftDestroy(int handle) {
    auto found = plans.find(handle);
    if (found == plans.end()) return invalid_plan;
    cuda_host_finish();
    *found->second->alive = false;
    plans.erase(found);
    return ok;
}
API int cufftGetVersion(int *version) { *version = 12100; return ok; }
API int cufftSetAutoAllocation(int, int) { return ok; }
API int cufftSetStream(int handle, void *stream) {
    // Work that was queued keeps the stream that it was queued on
    plans[handle] = std::make_shared<Plan>(*plans[handle]);
    plans[handle]->stream = stream;
    return ok;
}
API int cufftSetWorkArea(int handle, void *work) { plans[handle]->work = work; return ok; }
API int cufftMakePlanMany(
    int handle, int rank, int *shape, int *in, int in_step, int in_batch, int *out, int out_step, int out_batch, int type,
    int batch, size_t *size
) {
    std::vector<int> whole(shape, shape + rank), half = whole;
    half.back() = half.back() / 2 + 1;
    auto layout = [&](int *extents, int step, int next, const std::vector<int> &shape) {
        if (extents) return Layout{std::vector<int>(extents, extents + rank), step, next};
        long count = 1;
        for (int n : shape) count *= n;
        return Layout{shape, 1, count};
    };
    Plan plan{whole, type, batch, layout(in, in_step, in_batch, type == c2r || type == z2d ? half : whole),
              layout(out, out_step, out_batch, type == r2c || type == d2z ? half : whole), nullptr, nullptr};
    plan.alive = plans[handle]->alive;
    *plans[handle] = plan;
    *size = work_size;
    return ok;
}
API int cufftMakePlan1d(int handle, int n, int type, int batch, size_t *size) {
    return cufftMakePlanMany(handle, 1, &n, nullptr, 1, 0, nullptr, 1, 0, type, batch, size);
}
API int cufftExecC2C(int plan, void *in, void *out, int sign) { return run<float>(__func__, plan, in, out, sign); }
API int cufftExecZ2Z(int plan, void *in, void *out, int sign) { return run<double>(__func__, plan, in, out, sign); }
API int cufftExecR2C(int plan, void *in, void *out) { return run<float>(__func__, plan, in, out, -1); }
API int cufftExecD2Z(int plan, void *in, void *out) { return run<double>(__func__, plan, in, out, -1); }
API int cufftExecC2R(int plan, void *in, void *out) { return run<float>(__func__, plan, in, out, 1); }
API int cufftExecZ2D(int plan, void *in, void *out) { return run<double>(__func__, plan, in, out, 1); }
