import { ready } from 'osl-compiler';
import { type Counterexample, comparisons, type ProvenPolicy } from '../../policy/proof/index.js';
import { policyText } from '../../src/base/control/index.js';
import {
  type AccessDifference,
  accessDifferences,
  compiledPolicy,
  judgePolicy,
} from '../../src/model/authoring/index.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { databasePlace } from '../../src/service/settings/groups.js';
import { readSetting } from '../../src/service/settings/table.js';
import { type AuditFlags, recordReading, withLog } from '../audit/log.js';
import { parseTime } from '../audit/read.js';
import { EXIT, usage } from '../exit.js';
import { type ServerFlags, settingsOfModel } from '../flags.js';
import { counted, print, printJson, visible } from '../output.js';
import {
  counterexampleLines,
  decide,
  openTrials,
  type ProofResult,
  type Trial,
} from '../policy-proof/decide.js';
import type { Solver } from '../policy-proof/solver.js';
import { type PolicyFlags, policyBaseline, printJudgement } from './baseline.js';
import { withInstalledSolver } from './prove.js';
import { withControl } from './versions.js';

export interface PolicyDiffFlags extends PolicyFlags, Pick<ServerFlags, 'policy' | 'dataDir'> {
  readonly since?: string;
  readonly dir?: string;
  readonly prove?: true;
}

export async function runPolicyDiff(proposed: string, flags: PolicyDiffFlags): Promise<void> {
  const { text, model } = await comparedWith(proposed, flags);
  const judgement = judgePolicy(text, proposed, model);
  const { since } = flags;
  const proofs =
    flags.prove === true && judgement.ok ? await provenDifferences(text, proposed, model, flags) : null;
  const questions =
    since === undefined || !judgement.ok
      ? null
      : await comparePastQueries(text, proposed, model, { ...flags, since });
  if (flags.json) {
    printJson({
      ...judgement,
      ...(questions !== null && { questions }),
      ...(proofs !== null && { proofs: proofs.map(differenceJson) }),
    });
    if (!judgement.ok) process.exitCode = EXIT.usage;
    return;
  }
  printJudgement(judgement, proposed);
  if (questions !== null) for (const line of pastLines(questions)) print(line);
  if (proofs !== null) for (const line of proofLines(proofs)) print(visible(line));
}

/** Compares the roles of both policies by proof, and checks each counterexample on an embedded database. */
async function provenDifferences(
  text: string,
  file: string,
  { manifest, snapshot }: Model,
  flags: PolicyDiffFlags,
): Promise<readonly RoleDifference[]> {
  if (snapshot === null) throw usage('no policy serves, so there is nothing to compare with by proof');
  const { catalog } = manifest;
  const after = { catalog, snapshot: compiledPolicy(text, file, manifest) };
  const { manifestFile, policyFile } = settingsOfModel(flags);
  return withInstalledSolver(async (starting) => {
    const solver = await starting;
    const trials = openTrials({ manifestFile, policyFile });
    try {
      return await roleDifferences({ catalog, snapshot }, after, solver, trials.run);
    } finally {
      await trials.close();
    }
  });
}

function* proofLines(proofs: readonly RoleDifference[]): Generator<string> {
  const equal = proofs.filter(({ change }) => change === 'equal').length;
  yield `proved equal: ${equal} of ${counted(proofs.length, 'pair', 'pairs')} of a role and an entity`;
  for (const { role, entity, change, gain, because } of proofs) {
    if (change === 'equal') continue;
    yield `${change.padEnd(12)} ${role} on ${entity}${because === null ? '' : `: ${because}`}`;
    if (gain !== null) yield* counterexampleLines(gain);
  }
}

function differenceJson({ role, entity, change, gain, because }: RoleDifference) {
  const gained = gain === null ? null : { says: gain.part.description, row: Object.fromEntries(gain.row) };
  return { role, entity, change, gain: gained, because };
}

/**
 * Reads the proposed policy and the model to compare it with. If a control database is configured and no policy file is
 * named, the model comes from that database, and the proposed policy may be a version number.
 */
async function comparedWith(
  proposed: string,
  flags: PolicyDiffFlags,
): Promise<{ readonly text: string; readonly model: Model }> {
  const isNumber = /^\d{1,9}$/.test(proposed);
  const place = databasePlace(readSetting, 'OSL_CONTROL_URL');
  if (place === null || flags.policy !== undefined) {
    if (isNumber) throw usage(`version ${proposed}: set OSL_CONTROL_URL, the database where versions are`);
    await ready();
    const { manifestFile, policyFile } = settingsOfModel(flags);
    const { loadModel } = await import('../../src/service/model.js');
    return { text: await readManifestText(proposed), model: await loadModel(manifestFile, policyFile, null) };
  }
  return withControl(async ({ database }) => {
    const { tenant, model } = await policyBaseline(database, flags);
    const text = isNumber
      ? await policyText(database, tenant, Number(proposed))
      : await readManifestText(proposed);
    if (text === null) throw usage(`there is no version ${proposed}: osl policy history lists them`);
    return { text, model };
  });
}

const QUESTIONS: ReadonlySet<string> = new Set([
  'query',
  'explain',
  'subscribe',
  'sample',
  'prepare',
  'copy',
]);

/**
 * Compares queries logged since `flags.since` with access under another policy. Memory use grows with callers and
 * objects, not with queries.
 *
 * @throws Failure if there is no log, or if reading it cannot be recorded
 */
export async function comparePastQueries(
  text: string,
  file: string,
  { manifest, snapshot: before }: Model,
  flags: AuditFlags & { readonly since: string },
): Promise<PastQueries> {
  const since = parseTime('--since', flags.since);
  const after = compiledPolicy(text, file, manifest);
  const otherwise = before === null ? () => [] : accessDifferences({ manifest, before, after });
  const callers = new Map<string, PastCaller>();
  const counts = { asked: 0, otherwise: 0 };
  await withLog(flags, async (log) => {
    await recordReading(log, 'policy diff', { since });
    for await (const { action, chain, objects } of log.search({ since, kind: 'decision' }, false)) {
      if (!QUESTIONS.has(action) || objects.length === 0) continue;
      counts.asked++;
      const changes = otherwise({ chain, objects });
      if (changes.length > 0) counts.otherwise++;
      for (const change of changes) count(callers, chain, change);
    }
  });
  const most = [...callers.values()].sort((a, b) => b.questions - a.questions);
  return { since, ...counts, callers: most };
}

function count(callers: Map<string, PastCaller>, chain: readonly string[], change: AccessDifference): void {
  const key = JSON.stringify([chain, change.object]);
  const questions = (callers.get(key)?.questions ?? 0) + 1;
  callers.set(key, { chain, ...change, questions });
}

export interface PastQueries {
  /** Start of the compared period, RFC 3339, UTC. */
  readonly since: string;
  readonly asked: number;
  /** Number of queries that read an object which the caller would see differently under the other policy. */
  readonly otherwise: number;
  readonly callers: readonly PastCaller[];
}

export interface PastCaller {
  readonly chain: readonly string[];
  readonly object: string;
  readonly questions: number;
  readonly loses: readonly string[];
  readonly gains: readonly string[];
  readonly terms: boolean;
}

export function pastLines({ since, asked, otherwise, callers }: PastQueries): readonly string[] {
  const of = `${otherwise} of ${asked} question${asked === 1 ? '' : 's'} since ${since}`;
  return [
    asked === 0 ? `no question was asked since ${since}` : `${of} touched what would be seen otherwise`,
    ...callers.map((caller) => visible(`  ${callerLine(caller)}`)),
  ];
}

function callerLine({ chain, object, questions, loses, gains, terms }: PastCaller): string {
  const what = [
    ...(loses.length === 0 ? [] : [`loses ${loses.join(', ')}`]),
    ...(gains.length === 0 ? [] : [`gains ${gains.join(', ')}`]),
    ...(loses.length + gains.length === 0 && terms ? ['other rows, masks or conditions'] : []),
  ].join('; ');
  return `${questions} of ${chain.join(' → ')}: ${object}: ${what}`;
}

/** Difference between the active and the proposed policy in the access of a role to an entity. */
interface RoleDifference {
  readonly role: string;
  readonly entity: string;
  readonly change: 'equal' | 'narrower' | 'wider' | 'incomparable' | 'unknown';
  /** A row and a caller that gain access; null if none was found. */
  readonly gain: Counterexample | null;
  /** Reason if `change` is `unknown`; otherwise null. */
  readonly because: string | null;
}

/** Compares each role of either policy on each entity granted to it. */
function roleDifferences(
  before: ProvenPolicy,
  after: ProvenPolicy,
  solver: Solver,
  trial: Trial,
): Promise<readonly RoleDifference[]> {
  const roles = [...new Set([...before.snapshot.roles.keys(), ...after.snapshot.roles.keys()])];
  const compared = roles.flatMap((role) => {
    const gains = new Map(comparisons([role, role], after, before).map((o) => [o.relation.name, [o]]));
    const losses = new Map(comparisons([role, role], before, after).map((o) => [o.relation.name, [o]]));
    return [...new Set([...gains.keys(), ...losses.keys()])].map(async (entity) => {
      const [gained, lost] = await Promise.all(
        [gains, losses].map((of) => decide(of.get(entity) ?? [], solver, trial)),
      );
      return differenceOf(role, entity, gained ?? PROVED, lost ?? PROVED);
    });
  });
  return Promise.all(compared);
}

const PROVED: ProofResult = { kind: 'proved' };

function differenceOf(role: string, entity: string, gained: ProofResult, lost: ProofResult): RoleDifference {
  const unknown = [gained, lost].find((verdict) => verdict.kind === 'unknown');
  const gain = gained.kind === 'refuted' ? gained.counterexample : null;
  if (unknown?.kind === 'unknown') return { role, entity, change: 'unknown', gain, because: unknown.because };
  const isLost = lost.kind === 'refuted';
  const change = gain === null ? (isLost ? 'narrower' : 'equal') : isLost ? 'incomparable' : 'wider';
  return { role, entity, change, gain, because: null };
}
