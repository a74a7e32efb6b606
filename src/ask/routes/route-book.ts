import { LRUCache } from 'lru-cache';
import { type Caller, saidOf } from '../request/caller.js';
import { Sweep } from './sweep.js';
import { TextRoutes } from './text-routes.js';

/** Callers whose routes are kept at a time; those that asked longest ago make room. */
const MOST_CALLERS = 256;

interface Kept {
  readonly caller: Caller;
  readonly routes: TextRoutes;
}

/** The routes of all callers of one surface. */
export class RouteBook {
  readonly sweep = new Sweep();
  /** Questions that went by a route. */
  taken = 0;
  readonly #byCaller = new LRUCache<string, Kept>({ max: MOST_CALLERS });

  /**
   * The routes of `caller`. Nobody has them who is recorded as another, has other rights, or asks under another manifest
   * or policy, be it one that reads the same.
   */
  of(caller: Caller): TextRoutes {
    const { identity, access, manifest, snapshot } = caller;
    const key = JSON.stringify([
      identity.tenant,
      identity.chain,
      access.signature,
      access.claimed,
      saidOf(caller),
    ]);
    const kept = this.#byCaller.get(key);
    if (kept?.caller.manifest === manifest && kept.caller.snapshot === snapshot) return kept.routes;
    const routes = new TextRoutes();
    this.#byCaller.set(key, { caller, routes });
    return routes;
  }
}
