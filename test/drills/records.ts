import { readRecords } from '../../audit/index.js';
import { onServer } from '../support/native-postgres.js';
import type { Outcome } from './load.js';

/** The records of a drill's questions in an audit log. */
export interface Recorded {
  /** Ids of requests that were allowed and have an outcome of `ok`, or `unknown`: their gateway was killed. */
  readonly answered: ReadonlySet<string>;
  /** Number of them that came over the wire. */
  readonly wire: number;
  /** Number of those with the outcome `unknown`. */
  readonly unknown: number;
}

type Line = Readonly<Record<string, unknown>>;

export async function recordsInFiles(dir: string): Promise<Recorded> {
  const lines: Line[] = [];
  for await (const record of readRecords(dir)) lines.push({ ...record });
  return recordedIn(lines);
}

export function recordsInTable(url: string): Promise<Recorded> {
  return onServer(url, async (client) => {
    const { rows } = await client.query<{ record: string }>(
      'select record::text as record from osl_audit.record',
    );
    return recordedIn(rows.map(({ record }): Line => JSON.parse(record)));
  });
}

function recordedIn(lines: readonly Line[]): Recorded {
  const allowed = new Set<string>();
  const answered = new Set<string>();
  let wire = 0;
  let unknown = 0;
  for (const { kind, action, decision, request_id: id, outcome, surface } of lines) {
    if (action !== 'query' || typeof id !== 'string') continue;
    if (kind === 'decision' && decision === 'allow') allowed.add(id);
    if (kind !== 'outcome' || !/^(ok|unknown)$/.test(String(outcome)) || !allowed.has(id)) continue;
    if (outcome === 'unknown') unknown += 1;
    answered.add(id);
    if (surface === 'wire') wire += 1;
  }
  return { answered, wire, unknown };
}

/** Answers that clients have and the log has not: over REST each by its id, on the wire by their number. */
export function missingRecords(outcomes: readonly Outcome[], logs: readonly Recorded[]): number {
  const given = outcomes.filter(({ what, result }) => what === 'query' && /^(right|wrong)$/.test(result));
  const rest = given.filter(
    ({ requestId }) => requestId !== null && !logs.some(({ answered }) => answered.has(requestId)),
  ).length;
  const onWire = given.filter(({ surface }) => surface === 'wire').length;
  return rest + Math.max(0, onWire - logs.reduce((sum, { wire }) => sum + wire, 0));
}
