const BYTES_PER_TOKEN = 3;

/** Number of model tokens in `text`, estimated from its UTF-8 bytes, for models that do not report it. */
export function estimatedTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}
