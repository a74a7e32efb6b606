/** One statement of a kind that a tool is known to send, over the test shop. */
export interface Shape {
  /** What about it is particular. */
  readonly what: string;
  readonly sql: string;
  /** The SQLSTATE of a clean refusal, and why it is one; absent where the statement must be answered. */
  readonly refused?: { readonly sqlstate: string; readonly because: string };
}

export interface Tool {
  readonly tool: string;
  readonly shapes: readonly Shape[];
}

/** `n` values, comma-separated. */
export function list(n: number, value: (i: number) => string): string {
  return Array.from({ length: n }, (_, i) => value(i)).join(', ');
}
