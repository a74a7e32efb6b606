import type { Test } from 'tap';
import { listAt } from '../json.js';
import type { World } from '../world.js';

export { at, listAt } from '../json.js';

/** Asks the service and looks at what it does; fails where the rule's behaviour is switched off. */
export type Check = (t: Test, world: World) => Promise<unknown>;

/** A check that `good` is answered at REST, at MCP and on the wire, and `bad` refused there with this status and code. */
export function answeredAndRefused(
  subject: string,
  good: string,
  bad: readonly string[],
  status: number,
  code: string,
): Check {
  return async (t, world) => {
    await sameEverywhere(t, world, subject, good);
    for (const osql of bad) await refusedEverywhere(t, world, subject, osql, status, code);
  };
}

/** `osql` has rows, and the same at REST, at MCP and on the wire. */
export async function sameEverywhere(t: Test, world: World, subject: string, osql: string): Promise<void> {
  const [rest, ...others] = await world.everywhere(subject, osql);
  t.ok(rest?.code === '' && rest.rows.length > 0, `${osql}: ${rest?.code}`);
  for (const { surface, code, rows } of others) t.same([code, rows], ['', rest?.rows], `${surface}: ${osql}`);
}

/** `osql` is refused with this status and code at REST, at MCP and, without a status, on the wire; no row comes. */
export async function refusedEverywhere(
  t: Test,
  world: World,
  subject: string,
  osql: string,
  status: number,
  code: string,
): Promise<void> {
  for (const told of await world.everywhere(subject, osql)) {
    const expected = [told.surface === 'wire' ? null : status, code, []];
    t.same([told.status, told.code, told.rows], expected, `${told.surface}: ${osql}`);
  }
}

/** `RETRIEVE` of reviews. */
export function reviews(topK = 5, facet = 'reviews'): string {
  return `RETRIEVE(facet => '${facet}', query => 'a review of whales', top_k => ${topK})`;
}

export const LETTERS = "RETRIEVE(facet => 'letters', query => 'a letter on the roof', top_k => 3)";

export function authors(keys: string, more = ''): string {
  return `TRAVERSE(anchor => 'book', target => 'author', keys => ${keys}${more})`;
}

/** A statement of each of the five forms, in the order of the contract. */
export const FIVE_FORMS = [
  'select id from book order by id',
  `select text from ${reviews()}`,
  `select id from ${authors("('1')")} order by id`,
  'select id, evidence is not null as known from book where id in (1)',
  `select b.id from book b join ${reviews()} r on b.id = r.book_id`,
] as const;

/** Every example in a governed schema. */
export function examplesIn(schema: unknown): readonly string[] {
  return ['entities', 'facets', 'metrics', 'relationships', 'forms']
    .flatMap((list) => listAt(schema, list))
    .flatMap((one) => listAt(one, 'examples').map(String));
}
