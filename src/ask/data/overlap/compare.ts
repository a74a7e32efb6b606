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
import { messageOf } from '../../../base/thrown.js';
import { eachDataRow, MemoryShare, textValuesOf } from '../../../engine/index.js';
import { isShort } from '../../parsing/index.js';
import type { Caller } from '../../request/caller.js';
import { hasNoRelativeTimes } from '../answer-cache.js';
import type { AnswerParts } from '../parts.js';
import { statementOf } from '../planning.js';
import { StandbyUse } from '../query-answer.js';
import type { DataQuestion, ResultDelivery } from '../question.js';
import { engineOf, slotValues } from '../runtime/index.js';
import { settingsFor, timeCharge } from '../runtime/step.js';
import type { AnswerToAdmit, ReadSet } from './decide.js';

/** Maximum number of groups in one answer. Each group arrives in up to 16 rows, by the first digit of the hashes. */
const MAX_GROUPS = 4_096;
const PARTS = 16;
/** Maximum size in bytes of the hashes read for one answer. */
const MAX_BYTES = 268_435_456;

/**
 * If a grant requires it, compares the rows behind an answer with those behind earlier answers and adds the answer to
 * their history. Must be called before the query runs.
 *
 * @returns true if the answer was compared, in which case each repetition of the query must be compared too
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
    const tablePopulations = populations.filter((p) => p.table === table);
    const keys = historyKeys(table, tablePopulations, caller, secret);
    if (
      digest !== null &&
      (await refuseOnStoreError(parts, wasAnswered(parts, caller, [...keys.keys()], digest)))
    )
      continue;
    const memory = new MemoryShare(parts.memory, caller.identity.subject);
    try {
      const sets: ReadSet[] = [];
      for (const population of tablePopulations)
        sets.push(...(await setsOf(population, parts, caller, delivery, memory, secret)));
      const minimum = Math.max(...tablePopulations.map((p) => p.minimum));
      await admit(parts, caller, keys, { digest, sets, minimum });
    } finally {
      memory.release();
    }
  }
  return true;
}

/** True if all histories under `keys` contain the question. */
async function wasAnswered(
  { overlaps }: AnswerParts,
  { identity }: Caller,
  keys: readonly string[],
  digest: string,
): Promise<boolean> {
  return overlaps.thread.isRepeated(await overlaps.read(keys), digest, identity.subject);
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
 * Returns a keyed hash of everything that determines an answer, except the rows in the database. Null if the answer
 * depends on the time, since a repetition of such a question can select other rows.
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
  const encodedValues = values.map(({ format, bytes }) => [
    format,
    bytes && Buffer.from(bytes).toString('base64'),
  ]);
  return keyedHash(secret, [
    plan.accessSignature,
    plan.catalogVersion,
    sql,
    plan.clientOids,
    values.length,
    encodedValues,
    settings,
  ]);
}

function keyedHash(secret: string, value: unknown): string {
  return createHmac('sha256', secret).update(JSON.stringify(value)).digest('base64url');
}

/** Returns the keys of the histories that an answer belongs to, with their lifetimes in days. */
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
      const key = keyedHash(secret, [table, ...scope]);
      keys.set(key, Math.max(rule.days, keys.get(key) ?? 0));
    }
  }
  return keys;
}

/** Returns the sets of rows behind the answer's figures, including groups that are too small to be shown. */
async function setsOf(
  { plan, sets, minimum, hasUnit }: Population,
  parts: AnswerParts,
  caller: Caller,
  { parameters, settings, signal, snapshots }: ResultDelivery,
  memory: MemoryShare,
  secret: string,
): Promise<readonly ReadSet[]> {
  const engine = engineOf(parts, plan);
  const args = new Map([[MEMBER_KEY, secret]]);
  const values = slotValues(emit(plan).slots, args, { parts, caller, parameters });
  const groups = new Map<string, string[][]>();
  const write = (messages: Uint8Array): void => {
    memory.require(messages.length);
    for (const row of eachDataRow(messages)) {
      const [group, ...texts] = textValuesOf(row);
      const setHashes = groups.get(group ?? '') ?? sets.map(() => []);
      groups.set(group ?? '', setHashes);
      for (const [i, text] of texts.entries()) setHashes[i]?.push(text ?? '');
    }
  };
  const options = {
    subject: caller.identity.subject,
    resultFormats: [],
    maxRows: PARTS * MAX_GROUPS,
    maxBytes: MAX_BYTES,
    timeoutMs: parts.caps.timeoutMs,
    signal,
    settings: settingsFor(parts, caller, plan, settings),
    snapshot: snapshots?.snapshotOn(engine, caller) ?? null,
    ...timeCharge(parts, caller),
    ...new StandbyUse(null, false).statement(),
  };
  const { truncated } = await engine.execute(plan, values, options, { write });
  if (truncated)
    throw queryError('overlapShape', { what: `more than ${MAX_GROUPS} groups, or too many rows` });
  return [...groups.values()].flatMap((groupSets) =>
    groupSets.map((hashes, i) => ({
      hashes,
      digits: MEMBER_DIGITS,
      hasUnit,
      minimum,
      figures: sets[i] ?? [],
    })),
  );
}

async function admit(
  parts: AnswerParts,
  { identity }: Caller,
  keys: ReadonlyMap<string, number>,
  answer: Pick<AnswerToAdmit, 'digest' | 'sets' | 'minimum'>,
): Promise<void> {
  const { overlaps } = parts;
  const { verdict, endsAt } = await refuseOnStoreError(
    parts,
    overlaps.update([...keys.keys()], (stored) =>
      overlaps.thread.decide({ ...answer, keys: [...keys], stored }, identity.subject),
    ),
  );
  if (verdict === 'refused') throw queryError('overlap', { minimum: answer.minimum });
  if (verdict === 'spent')
    throw queryError('overlapSpent', {
      until: new Date(endsAt).toISOString(),
      retryAfterSeconds: Math.max(1, Math.ceil((endsAt - Date.now()) / 1_000)),
    });
}

/** Refuses the answer if its history cannot be read or stored. @throws QueryError E0537 */
async function refuseOnStoreError<T>({ log }: AnswerParts, work: Promise<T>): Promise<T> {
  try {
    return await work;
  } catch (error) {
    log.error('earlier answers cannot be read or stored', { cause: messageOf(error) });
    throw queryError('overlapUnknown', {});
  }
}
