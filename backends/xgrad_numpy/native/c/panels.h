/* Instructions that multiply and add without rounding between, for panels.c. */

#if defined(__AVX2__)
#include <immintrin.h>
#endif

enum { TILE_ROWS = 6 };
#if defined(__AVX512F__)
enum { VECTOR_BYTES = 64, PANEL_VECTORS = 4 };
#define FUSED_float(x, y, sum) _mm512_fmadd_ps(x, y, sum)
#define FUSED_double(x, y, sum) _mm512_fmadd_pd(x, y, sum)
#elif defined(__AVX2__) && defined(__FMA__)
enum { VECTOR_BYTES = 32, PANEL_VECTORS = 2 };
#define FUSED_float(x, y, sum) _mm256_fmadd_ps(x, y, sum)
#define FUSED_double(x, y, sum) _mm256_fmadd_pd(x, y, sum)
#elif defined(__aarch64__)
#include <arm_neon.h>
enum { VECTOR_BYTES = 16, PANEL_VECTORS = 4 };
#define FUSED_float(x, y, sum) vfmaq_f32(sum, x, y)
#define FUSED_double(x, y, sum) vfmaq_f64(sum, x, y)
#else
#define WITHOUT_PANELS
#endif

#if !defined(WITHOUT_PANELS)
/* OpenBLAS halves what is less than twice as many as it adds up at a time. */
static int64_t next_depth(int64_t left, int64_t most) {
    return left >= 2 * most ? most : left > most ? (left / 2 + 15) / 16 * 16 : left;
}
#endif
