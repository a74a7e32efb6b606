/**
 * Where one request comes from, when, and what its caller says of it: what conditions of grants are held against, beside
 * the claims of its token. A request has one of them, however long its chain.
 */
export interface Circumstances {
  /** When it is decided: ms since the epoch, on the clock of this machine. */
  readonly now: number;
  /** `rest`, `wire`, `mcp`: where the server took it in, whatever its client says of itself. */
  readonly surface: string;
  /** Of the peer's socket, whatever a header says; null where it has none. */
  readonly address: string | null;
  /** What its caller says that it is for; it counts only where policy and token allow it (`purposeOf`). */
  readonly purpose: string | null;
  /** The glass that its caller has broken. */
  readonly emergency: Emergency | null;
}

/** A break-glass that is on record. */
export interface Emergency {
  /** Joins the records of what was asked under it with that of its reason. */
  readonly id: string;
  /** ms since the epoch */
  readonly startedAt: number;
}

/** Of what is no request: no condition holds. */
export const NOWHERE: Circumstances = Object.freeze({
  now: Number.NaN,
  surface: '',
  address: null,
  purpose: null,
  emergency: null,
});
