import type { PolicySnapshot } from '../../policy/index.js';
import type { Manifest } from './manifest/index.js';

/** The versions that serve together. A reload replaces the pair whole or not at all. */
export interface Model {
  readonly manifest: Manifest;
  /** Null while no policy is loaded: then everything is refused. */
  readonly snapshot: PolicySnapshot | null;
}

/** The newest policy is missing or invalid, and the last valid one serves meanwhile. Times are ms since 1970. */
export interface KeptPolicy {
  readonly since: number;
  /** From then on nothing serves. */
  readonly until: number;
}

/** What this process rests on and others keep: true once it has answered since the start, and where there is none. */
export interface PartsReached {
  /** The control database. */
  readonly control: boolean;
  /** The store in which gateways count limits together. */
  readonly limits: boolean;
  /** Of how many issuers there are keys; with `none` there is no key at all, not even an own one, by which a token could be good. */
  readonly issuers: 'all' | 'some' | 'none';
}
