import type { Test } from 'tap';
import type { World } from '../world.js';

/** Asks the service and looks at what it does; fails where the rule's behaviour is switched off. */
export type Check = (t: Test, world: World) => Promise<unknown>;

/** A check that a question is refused with this status and code. */
export function refused(subject: string, osql: string, status: number, code: string): Check {
  return async (t, world) => {
    const heard = await world.osql(subject, osql);
    t.same([heard.status, heard.code], [status, code], osql);
  };
}

/** `RETRIEVE` of reviews. */
export function reviews(topK = 5, facet = 'reviews'): string {
  return `RETRIEVE(facet => '${facet}', query => 'a review of whales', top_k => ${topK})`;
}

export function authors(keys: string, more = ''): string {
  return `TRAVERSE(anchor => 'book', target => 'author', keys => ${keys}${more})`;
}

/** A member of JSON; undefined where there is none. */
export function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>(
    (v, key) => (typeof v === 'object' && v !== null ? Reflect.get(v, key) : undefined),
    value,
  );
}

/** A list in JSON; throws where there is none, so that no check passes over nothing. */
export function listAt(value: unknown, ...path: readonly (string | number)[]): readonly unknown[] {
  const list = at(value, ...path);
  if (!Array.isArray(list)) throw new Error(`there is no list at ${path.join('.')}`);
  return list;
}
