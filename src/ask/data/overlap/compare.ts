import { createHmac } from 'node:crypto';
import {
  comparesOverlaps,
  compilePopulations,
  emit,
  type GovernedPlan,
  isRepeatable,
  MEMBER_DIGITS,
  MEMBER_KEY,
  oneStatement,
  type Population,
  parse,
  queryError,
} from 'osl-compiler';
import { inTurns } from '../../../base/in-turns.js';
import { messageOf } from '../../../base/thrown.js';
import { eachDataRow, MemoryShare, textValuesOf } from '../../../engine/index.js';
import { isShort } from '../../parsing/index.js';
import type { Caller } from '../../request/caller.js';
import { hasNoRelativeTimes } from '../answer-cache.js';
import type { AnswerParts } from '../parts.js';
import { statementOf } from '../planning.js';
import type { DataQuestion, ResultDelivery } from '../question.js';
import { engineOf, slotValues } from '../runtime/index.js';
import { settingsFor, timeCharge } from '../runtime/step.js';
import { StandbyUse } from '../standby-use.js';
import { type AnsweredSet, distinctSorted, OverlapHistory, type Verdict } from './history.js';
import type { ChangedHistory, OverlapUpdate } from './store.js';

const DAY_MS = 86_400_000;
/** Most groups of one answer, each of which comes in 16 rows at most. */
const MOST_GROUPS = 4_096;
const PARTS = 16;
/** Most bytes of the hashes that are read for one answer. */
const MOST_BYTES = 268_435_456;

/**
 * Compares the rows behind an answer with those behind earlier ones, if a grant requires it, and adds it to them. Call it
 * before the query runs.
 *
 * @returns true if the answer was compared, so that each run of the query must be
 * @throws QueryError E0537, and the errors of running a query
 */
export async function isComparedWithEarlier(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  question: DataQuestion,
  delivery: ResultDelivery,
): Promise<boolean> {
  if (!comparesOverlaps(plan, caller.access)) return false;
  const secret = parts.maskKeys.pad('inner', 'answers that are compared');
  const populations = await populationsFor(parts, caller, question);
  const digest = questionDigest(parts, caller, plan, delivery, secret);
  for (const table of new Set(populations.map((p) => p.table))) {
    const own = populations.filter((p) => p.table === table);
    const keys = historyKeys(table, own, caller, secret);
    if (digest !== null && (await unlessUnknown(parts, wasAnswered(parts, [...keys.keys()], digest))))
      continue;
    const memory = new MemoryShare(parts.memory, caller.identity.subject);
    try {
      const sets: AnsweredSet[] = [];
      for (const one of own) sets.push(...(await setsOf(one, parts, caller, delivery, memory, secret)));
      await admit(parts, keys, digest, sets, Math.max(...own.map((p) => p.minimum)));
    } finally {
      memory.release();
    }
  }
  return true;
}

/** True if all histories under `keys` contain the question. */
async function wasAnswered(
  { overlaps }: AnswerParts,
  keys: readonly string[],
  digest: string,
): Promise<boolean> {
  const stored = await overlaps.read(keys);
  return stored.every((bytes) => bytes !== null && historyOf(bytes, 0).hasAnswered(digest));
}

async function populationsFor(
  { parsing }: AnswerParts,
  { manifest: { catalog }, access, identity }: Caller,
  { body, parameterOids }: DataQuestion,
): Promise<readonly Population[]> {
  if (body.kind === 'metrics') return compilePopulations(body.request, catalog, access);
  const { text, world } = statementOf(body);
  const parsed = isShort(text) ? parse(text) : oneStatement(await parsing.parse(text, identity.subject));
  return compilePopulations(parsed, catalog, access, { parameterOids, world });
}

/**
 * Returns a keyed hash of everything that determines an answer, except the rows in the database; null if it depends on
 * the time, which could move a filter from row to row.
 */
function questionDigest(
  parts: AnswerParts,
  caller: Caller,
  plan: GovernedPlan,
  { parameters, settings }: ResultDelivery,
  secret: string,
): string | null {
  const { sql, slots } = emit(plan);
  const values = slotValues(slots, new Map(), { parts, caller, parameters });
  if (!isRepeatable(plan) || !hasNoRelativeTimes({ plan, values })) return null;
  const written = values.map(({ format, bytes }) => [format, bytes && Buffer.from(bytes).toString('base64')]);
  return keyed(secret, [
    plan.accessSignature,
    plan.catalogVersion,
    sql,
    plan.clientOids,
    values.length,
    written,
    settings,
  ]);
}

function keyed(secret: string, value: unknown): string {
  return createHmac('sha256', secret).update(JSON.stringify(value)).digest('base64url');
}

/** Returns the keys of the histories that an answer belongs to, with the days that they last. */
function historyKeys(
  table: string,
  populations: readonly Population[],
  { identity: { chain } }: Caller,
  secret: string,
): ReadonlyMap<string, number> {
  const keys = new Map<string, number>();
  for (const rule of populations.flatMap((p) => p.rules)) {
    const scopes = rule.with === null ? chain.map((name) => ['subject', name]) : [['group', rule.with]];
    for (const scope of scopes) {
      const key = keyed(secret, [table, ...scope]);
      keys.set(key, Math.max(rule.days, keys.get(key) ?? 0));
    }
  }
  return keys;
}

/** Returns the sets of rows behind the answer's figures, without those that are too few to be shown. */
async function setsOf(
  { plan, sets, minimum, hasUnit }: Population,
  parts: AnswerParts,
  caller: Caller,
  { parameters, settings, signal, snapshots }: ResultDelivery,
  memory: MemoryShare,
  secret: string,
): Promise<readonly AnsweredSet[]> {
  const engine = engineOf(parts, plan);
  const given = new Map([[MEMBER_KEY, secret]]);
  const values = slotValues(emit(plan).slots, given, { parts, caller, parameters });
  const groups = new Map<string, number[][]>();
  const size = hasUnit ? 2 * MEMBER_DIGITS : MEMBER_DIGITS;
  const write = (messages: Uint8Array): void => {
    memory.require(messages.length);
    for (const row of eachDataRow(messages)) {
      const [group, ...texts] = textValuesOf(row);
      const own = groups.get(group ?? '') ?? sets.map(() => []);
      groups.set(group ?? '', own);
      for (const [i, text] of texts.entries()) addHashes(text ?? '', own[i] ?? []);
    }
  };
  const options = {
    subject: caller.identity.subject,
    resultFormats: [],
    maxRows: PARTS * MOST_GROUPS,
    maxBytes: MOST_BYTES,
    timeoutMs: parts.caps.timeoutMs,
    signal,
    settings: settingsFor(parts, caller, plan, settings),
    snapshot: snapshots?.of(engine, caller) ?? null,
    ...timeCharge(parts, caller),
    ...new StandbyUse(null, false).statement(),
  };
  const { truncated } = await engine.execute(plan, values, options, { write });
  if (truncated)
    throw queryError('overlapShape', { what: `more than ${MOST_GROUPS} groups, or too many rows` });
  return [...groups.values()].flatMap((own) =>
    own.flatMap((hashes, i) => {
      const set = answeredSet(hashes, hasUnit, sets[i] ?? []);
      return unitsIn(set) < minimum ? [] : [set];
    }),
  );

  function addHashes(text: string, into: number[]): void {
    for (let at = 0; at < text.length; at += size)
      for (let part = at; part < at + size; part += MEMBER_DIGITS)
        into.push(Number.parseInt(text.slice(part, part + MEMBER_DIGITS), 16));
  }
}

/** @param hashes of rows, each followed by that of its unit if there are units */
function answeredSet(hashes: readonly number[], hasUnit: boolean, figures: readonly string[]): AnsweredSet {
  if (!hasUnit) return { members: distinctSorted(Float64Array.from(hashes)), units: null, figures };
  const unitOf = new Map<number, number>();
  for (let at = 0; at < hashes.length; at += 2) unitOf.set(hashes[at] ?? 0, hashes[at + 1] ?? 0);
  const members = distinctSorted(Float64Array.from(unitOf.keys()));
  return { members, units: members.map((m) => unitOf.get(m) ?? 0), figures };
}

function unitsIn({ members, units }: AnsweredSet): number {
  return units === null ? members.length : new Set(units).size;
}

async function admit(
  parts: AnswerParts,
  keys: ReadonlyMap<string, number>,
  digest: string | null,
  sets: readonly AnsweredSet[],
  minimum: number,
): Promise<void> {
  const { verdict, endsAt } = await unlessUnknown(
    parts,
    parts.overlaps.update([...keys.keys()], (stored) => decide([...keys], stored, digest, sets, minimum)),
  );
  if (verdict === 'refused') throw queryError('overlap', { minimum });
  if (verdict === 'spent')
    throw queryError('overlapSpent', {
      until: new Date(endsAt).toISOString(),
      retryAfterSeconds: Math.max(1, Math.ceil((endsAt - Date.now()) / 1_000)),
    });
}

interface Decided {
  readonly verdict: Verdict;
  /** End of the history that decided. */
  readonly endsAt: number;
}

/** Adds an answer to all histories, or to none. A refusal is counted. */
async function decide(
  keys: readonly (readonly [string, number])[],
  stored: readonly (Buffer | null)[],
  digest: string | null,
  sets: readonly AnsweredSet[],
  minimum: number,
): Promise<OverlapUpdate<Decided>> {
  const changed: ChangedHistory[] = [];
  let endsAt = 0;
  for (const [i, [key, days]] of keys.entries()) {
    const bytes = stored[i] ?? null;
    const history = historyOf(bytes, days);
    endsAt = history.endsAt;
    const verdict = await inTurns(history.admitInSteps(digest, sets, minimum));
    if (verdict === 'refused') {
      const before = historyOf(bytes, days);
      before.refuse();
      return {
        result: { verdict, endsAt },
        changed: [{ key, bytes: before.encode(), endsAt: before.endsAt }],
      };
    }
    if (verdict === 'spent') return { result: { verdict, endsAt }, changed: [] };
    if (verdict === 'admitted') changed.push({ key, bytes: history.encode(), endsAt });
  }
  return { result: { verdict: 'admitted', endsAt }, changed };
}

function historyOf(bytes: Buffer | null, days: number): OverlapHistory {
  const known = bytes === null ? null : OverlapHistory.decode(bytes);
  return known !== null && known.endsAt > Date.now() ? known : new OverlapHistory(Date.now() + days * DAY_MS);
}

/** Without its history, no answer is given. @throws QueryError E0537 */
async function unlessUnknown<T>({ log }: AnswerParts, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    log.error('earlier answers cannot be read or stored', { cause: messageOf(error) });
    throw queryError('overlapUnknown', {});
  }
}
