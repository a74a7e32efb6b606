/** A broken invariant of ours. Logged whole; the caller sees a request id. */
export class InternalError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'InternalError';
  }
}
