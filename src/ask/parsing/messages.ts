/** What the host asks the thread that parses: one text at a time, as `prepareText` made it. */
export interface ToParser {
  readonly parsed: string;
}

/** `grammar`: a `Grammar` as JSON, which crosses threads faster than the tree itself. */
export type FromParser =
  | { readonly kind: 'ready' }
  | { readonly kind: 'parsed'; readonly grammar: string }
  | { readonly kind: 'failed'; readonly reason: string };
