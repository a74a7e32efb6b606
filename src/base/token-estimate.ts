const BYTES_PER_TOKEN = 3;

/** Estimates the number of model tokens in `text` from its UTF-8 bytes, for models that do not report token usage. */
export function estimatedTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
