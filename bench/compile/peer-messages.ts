/** SQL of a question, and the values of its parameters. */
export interface PeerStatement {
  readonly sql: string;
  readonly params: readonly unknown[];
}

/** What this process is asked, and answers under the same number. */
export type Order = { readonly number: number } & (
  | { readonly kind: 'time'; readonly from: number; readonly size: number }
  | { readonly kind: 'form'; readonly index: number }
);

export interface Reply {
  readonly number: number;
  readonly value?: unknown;
  readonly error?: string;
}
