import { ERRORS, type ErrorName } from 'osl-compiler';
import t, { type Test } from 'tap';
import type { AuditRecord } from '../../../audit/index.js';
import { NO_NATIVE, startNativePostgres } from '../../support/native-postgres.js';
import { CASES, type Case, UNREACHED } from './cases.js';
import { type Failure, World } from './world.js';

/**
 * Every failure that a caller can get, made on each surface, and held against what the log says of it: the same code, and
 * `deny` where the caller lacks a right, and nowhere else.
 */

t.setTimeout(600_000);

/** Entries that tell their caller of a missing or lost right; said here anew, so that the product cannot agree with itself. */
const LACK_OF_RIGHT: ReadonlySet<ErrorName> = new Set<ErrorName>([
  'adminOnly',
  'authorsOnly',
  'decodeDenied',
  'denied',
  'foreignOrigin',
  'groupsOnly',
  'invalidCertificate',
  'invalidToken',
  'keyNotClear',
  'missingToken',
  'noAccess',
  'noGlass',
  'needsApproval',
  'notApprover',
  'notPublishable',
  'operatorsOnly',
  'outsideAllowlist',
  'purposeDenied',
  'rightsChanged',
  'tokenUsed',
  'upstreamForAdmins',
]);

function isEntry(gets: Case['gets']): gets is ErrorName {
  return !gets.startsWith('SQLSTATE ');
}

function lacksRight(gets: Case['gets']): boolean {
  return isEntry(gets) ? LACK_OF_RIGHT.has(gets) : /^SQLSTATE (?:42501|28...)$/.test(gets);
}

/** Entries whose SQLSTATE is the database's own for the value. */
const OF_THEIR_VALUES: ReadonlySet<Case['gets']> = new Set<ErrorName>([
  'evaluation',
  'invalidLiteral',
  'negativeCount',
]);

/** Null where the caller got what the case says. */
function wrongFailure(one: Case, got: Failure | null): string | null {
  const { gets } = one;
  if (got === null) return 'nothing failed';
  const { code, sqlstate, http } = isEntry(gets)
    ? ERRORS[gets]
    : { code: null, sqlstate: gets.slice('SQLSTATE '.length), http: null };
  const same =
    (got.code === null || got.code === code) &&
    (got.sqlstate === null || got.sqlstate === sqlstate || OF_THEIR_VALUES.has(gets)) &&
    (got.http === null || got.http === (one.status ?? http));
  return same ? null : `it got ${JSON.stringify(got)}`;
}

/** The record of a failure has the code of the catalogue, or the SQLSTATE that its caller got. */
function isOf({ code, sqlstate }: Failure, recorded: string | null): boolean {
  if (code !== null) return recorded === code;
  const entries = Object.values(ERRORS).filter((entry) => entry.code === recorded);
  return recorded === sqlstate || entries.some((entry) => entry.sqlstate === sqlstate);
}

/** What the log says that the caller did not get; null where they agree. */
function wrongRecords(one: Case, got: Failure, records: readonly AuditRecord[]): string | null {
  const own = got.requestId === null ? records : records.filter((r) => r.request_id === got.requestId);
  const failed = own.filter((r) => r.code !== null);
  const [record] = failed;
  const told = JSON.stringify(
    own.map(({ kind, action, decision, outcome, code }) => [kind, action, decision, outcome, code]),
  );
  if (record === undefined || failed.length > 1) return `there are ${failed.length} records of it: ${told}`;
  if (!isOf(got, record.code)) return `it has another code: ${told}`;
  if ((record.decision === 'deny') !== lacksRight(one.gets)) return `a denial or none: ${told}`;
  if (record.decision !== 'deny' && (record.decision ?? record.outcome) === 'ok')
    return `it went well: ${told}`;
  const allowed = own.some((r) => r.kind === 'decision' && r.decision === 'allow' && r.action !== 'login');
  if (lacksRight(one.gets) && got.requestId !== null && allowed && one.lostLater !== true)
    return `it was allowed first: ${told}`;
  const missing = (one.objects ?? []).filter((name) => !record.objects.includes(name));
  return missing.length === 0 ? null : `it does not name ${missing.join()}: ${record.objects.join()}`;
}

async function judge(t: Test, world: World, one: Case): Promise<void> {
  const name = `${one.gets}: ${one.surface}`;
  const got = await one.fails(world);
  const wrong = wrongFailure(one, got);
  if (wrong !== null || got === null) {
    t.fail(`${name}: ${wrong}`);
    return;
  }
  const records = await world.recorded((found) => wrongRecords(one, got, found) === null);
  t.equal(wrongRecords(one, got, records), null, name);
}

const postgres = await startNativePostgres();
if (postgres === null) t.test('failures and their records', { skip: NO_NATIVE }, async () => undefined);
else
  t.test('failures and their records', async (t) => {
    const world = await World.start(postgres);
    t.teardown(async () => {
      await world.stop();
      await postgres.stop();
    });
    for (const one of CASES) await judge(t, world, one);
  });

t.test('each entry of the catalogue has a case, or a reason why it has none', async (t) => {
  const reached = new Set(CASES.map(({ gets }) => gets));
  // Every key of the catalogue is an ErrorName; Object.keys only says string.
  for (const name of Object.keys(ERRORS) as ErrorName[])
    t.equal(reached.has(name) ? 1 : 0, UNREACHED[name] === undefined ? 1 : 0, name);
});
