/** SQL of a query, and the values of its parameters. */
export interface PeerStatement {
  readonly sql: string;
  readonly params: readonly unknown[];
}

/** Message to a peer process; the reply has the same number. */
export type Order = { readonly number: number } & (
  | { readonly kind: 'time'; readonly from: number; readonly size: number }
  | { readonly kind: 'form'; readonly index: number }
);

export interface Reply {
  readonly number: number;
  readonly value?: unknown;
  readonly error?: string;
}
