/* One PCD-1 update of a small machine, every loop fused by hand: what a compiler cannot be expected to find.

   Weights are hidden x visible. A cheap xorshift stream per unit stands for the noise, and the logistic function is a
   polynomial in single precision: this is a floor for speed, not a trainer. Build with -Ofast -march=native. */
#include <stdint.h>
#include <string.h>

enum { MOST_VISIBLE = 1024, MOST_HIDDEN = 64, MOST_ROWS = 16 };

static inline uint32_t advance(uint32_t *state) {
  uint32_t word = *state;
  word ^= word << 13;
  word ^= word >> 17;
  word ^= word << 5;
  return *state = word;
}

static inline float between_0_and_1(uint32_t word) { return (float)(word >> 8) * 0x1p-24f; }

static inline float logistic(float field) {
  float power = field * -1.442695041f;
  power = power > 120.0f ? 120.0f : (power < -120.0f ? -120.0f : power);
  int32_t whole = (int32_t)(power + 128.0f) - 128;
  float rest = power - (float)whole;
  float mantissa = 1.0f + rest * (0.6931472f + rest * (0.2402265f + rest * (0.0555041f + rest * (0.0096181f + rest * 0.0013333f))));
  union { int32_t bits; float value; } scale = { (whole + 127) << 23 };
  return 1.0f / (1.0f + mantissa * scale.value);
}

void train(float *weights, float *visible_bias, float *hidden_bias, float *chains, const uint8_t *rows, int batches,
           uint32_t *visible_noise, uint32_t *hidden_noise, int visible, int hidden, int batch, int updates, float rate) {
  static float data[MOST_ROWS][MOST_VISIBLE], fantasy[MOST_ROWS][MOST_VISIBLE];
  static float positive[MOST_HIDDEN][MOST_ROWS], negative[MOST_HIDDEN][MOST_ROWS];
  const float scale = rate / (float)batch;
  for (int update = 0; update < updates; update++) {
    const uint8_t *shown = rows + (size_t)(update % batches) * batch * visible;
    for (int row = 0; row < batch; row++) {
      float *restrict drawn = fantasy[row];
      float *restrict given = data[row];
      memcpy(drawn, visible_bias, visible * sizeof(float));
      for (int j = 0; j < hidden; j++) {
        if (chains[row * hidden + j] == 0.0f) continue;
        const float *restrict line = weights + j * visible;
        for (int i = 0; i < visible; i++) drawn[i] += line[i];
      }
      for (int i = 0; i < visible; i++) {
        drawn[i] = between_0_and_1(advance(visible_noise + row * visible + i)) < logistic(drawn[i]) ? 1.0f : 0.0f;
        given[i] = (float)shown[row * visible + i];
      }
      for (int j = 0; j < hidden; j++) {
        const float *restrict line = weights + j * visible;
        float with_data = hidden_bias[j], with_fantasy = hidden_bias[j];
        for (int i = 0; i < visible; i++) {
          with_data += line[i] * given[i];
          with_fantasy += line[i] * drawn[i];
        }
        const float mean = logistic(with_fantasy);
        positive[j][row] = scale * logistic(with_data);
        negative[j][row] = scale * mean;
        chains[row * hidden + j] = between_0_and_1(advance(hidden_noise + row * hidden + j)) < mean ? 1.0f : 0.0f;
      }
    }
    for (int j = 0; j < hidden; j++) {
      float *restrict line = weights + j * visible;
      if (batch == 5) { /* the batch of the table, so that one pass over the weights serves all its rows */
        for (int i = 0; i < visible; i++)
          line[i] += positive[j][0] * data[0][i] + positive[j][1] * data[1][i] + positive[j][2] * data[2][i] +
                     positive[j][3] * data[3][i] + positive[j][4] * data[4][i] - negative[j][0] * fantasy[0][i] -
                     negative[j][1] * fantasy[1][i] - negative[j][2] * fantasy[2][i] -
                     negative[j][3] * fantasy[3][i] - negative[j][4] * fantasy[4][i];
      } else {
        for (int row = 0; row < batch; row++)
          for (int i = 0; i < visible; i++)
            line[i] += positive[j][row] * data[row][i] - negative[j][row] * fantasy[row][i];
      }
      for (int row = 0; row < batch; row++) hidden_bias[j] += positive[j][row] - negative[j][row];
    }
    for (int row = 0; row < batch; row++)
      for (int i = 0; i < visible; i++) visible_bias[i] += scale * (data[row][i] - fantasy[row][i]);
  }
}
