/** Of a `traceparent` of W3C Trace Context that was checked. */
export interface Trace {
  /** 32 hex digits. */
  readonly traceId: string;
  /** 16 hex digits, of who asks. */
  readonly spanId: string;
  readonly sampled: boolean;
}

/** Null for what is no `traceparent`. */
export function traceOf(text: string): Trace | null {
  const [, traceId = '', spanId = '', flags = ''] =
    /^[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})$/.exec(text) ?? [];
  if (traceId === '') return null;
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}

/** The span of a request, by its id, so that who is told of it on the way and who is told at the end mean the same. */
export function spanIdOf(requestId: string): string {
  return requestId.replaceAll('-', '').slice(-16);
}
