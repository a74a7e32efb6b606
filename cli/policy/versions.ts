import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import {
  type Activation,
  type ActivationBase,
  activatePolicy,
  activations,
  activePolicy,
  type ControlDatabase,
  type ControlPlace,
  type ControlQueries,
  controlVersions,
  migrate,
  openControl,
  policyText,
  policyVersions,
  pushPolicy,
} from '../../src/base/control/index.js';
import { compiledPolicy, judgePolicy, type PolicyJudgement } from '../../src/model/authoring/index.js';
import { readManifestText } from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { databasePlace } from '../../src/service/settings/groups.js';
import { readSetting } from '../../src/service/settings/table.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { note, print, printJson, terminalWidth, visible } from '../output.js';
import { formatTable } from '../table.js';
import {
  type AuthorFlags,
  authorshipOf,
  noteActive,
  type PolicyFlags,
  policyBaseline,
  printJudgement,
  tenantFor,
} from './baseline.js';
import { TESTS_FILE, withInstalledSolver, withTestsFile } from './prove.js';

interface ClaimFlags {
  readonly claims?: string;
}

export interface ActivateFlags extends AuthorFlags, ClaimFlags {}

export interface PushFlags extends AuthorFlags, ClaimFlags {
  readonly activate?: true;
}

export async function withControl<T>(
  work: (control: { readonly database: ControlDatabase; readonly place: ControlPlace }) => Promise<T>,
): Promise<T> {
  const place = databasePlace(readSetting, 'OSL_CONTROL_URL');
  if (place === null)
    throw usage('set OSL_CONTROL_URL, or OSL_CONTROL_URL_FILE: the database that gateways share');
  const database = openControl(place);
  try {
    return await work({ database, place });
  } finally {
    await database.close();
  }
}

export function runShow(version: number | null, flags: PolicyFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const text =
      version === null
        ? ((await activePolicy(database, tenant))?.text ?? null)
        : await policyText(database, tenant, version);
    if (text === null)
      throw new Failure(
        EXIT.failed,
        version === null ? 'error: no policy is active' : `error: there is no version ${version}`,
      );
    process.stdout.write(text);
  });
}

export function runHistory(flags: PolicyFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const versions = await policyVersions(database, tenant);
    const served = await activations(database, tenant);
    if (flags.json) {
      printJson({ tenant, versions, activations: served });
      return;
    }
    const [serves] = served;
    const rows = versions.map(({ number, digest, parent, author, login, at, comment }) => [
      `${number}${serves?.version === number ? ' *' : ''}`,
      at,
      author,
      login,
      digest.slice(0, 12),
      parent === null ? null : String(parent),
      comment,
    ]);
    print(formatTable(VERSION_COLUMNS, rows, terminalWidth()));
    print('');
    const times = served.map(({ number, version, action, author, login, at, comment }) => [
      String(number),
      at,
      `${action} ${version}`,
      author,
      login,
      comment,
    ]);
    print(formatTable(ACTIVATION_COLUMNS, times, terminalWidth()));
  });
}

const VERSION_COLUMNS = ['version', 'at', 'author', 'login', 'digest', 'parent', 'comment'];
const ACTIVATION_COLUMNS = ['activation', 'at', 'what', 'author', 'login', 'comment'];

export function runActivate(version: number, flags: ActivateFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const { tenant, model, active, seen } = await policyBaseline(database, flags);
    const text = await policyText(database, tenant, version);
    if (text === null) throw usage(`there is no version ${version}: osl policy history lists them`);
    const judgement = judgePolicy(text, `version ${version}`, model);
    if (!flags.json || !judgement.ok) printJudgement(judgement, `version ${version}`);
    if (active?.version === version) {
      if (flags.json) printJson({ version, activation: active.activation, diff: judgement.diff });
      else note(`version ${version} is active already`);
      return;
    }
    await requireClaims(text, null, model, flags.claims);
    const asked = { version, action: 'activate', ...authorshipOf(flags) } as const;
    const activation = await activatePolicy(database, tenant, asked, seen);
    if (flags.json) printJson({ version, activation, diff: judgement.diff });
    else noteActive(version, activation);
  });
}

export function runPush(file: string, flags: PushFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const text = await readManifestText(file);
    const { tenant, model, seen } = await policyBaseline(database, flags);
    const judgement = judgePolicy(text, file, model);
    if (!flags.json || !judgement.ok) printJudgement(judgement, file);
    await requireClaims(text, file, model, flags.claims);
    const by = authorshipOf(flags);
    const { number, added } = await pushPolicy(database, tenant, text, by);
    if (!flags.json) note(added ? `kept as version ${number}` : `version ${number} has this text already`);
    const activation = flags.activate
      ? await activatePolicy(database, tenant, { version: number, action: 'activate', ...by }, seen)
      : null;
    if (flags.json) printJson({ version: number, added, activation, diff: judgement.diff });
    else if (activation !== null) noteActive(number, activation);
  });
}

export function runRollback(to: number | null, flags: AuthorFlags): Promise<void> {
  return withControl(async ({ database }) => {
    const tenant = await tenantFor(database, flags);
    const history = await activations(database, tenant);
    const version = to ?? previousVersion(history);
    const text = await policyText(database, tenant, version);
    if (text === null) throw usage(`there is no version ${version}: osl policy history lists them`);
    if (!history.some((activation) => activation.version === version))
      throw usage(`version ${version} never served: osl policy activate ${version}`);
    const { seen, judgement } = await judgeIfPossible(database, tenant, version, text, flags);
    if (judgement !== null && (!flags.json || !judgement.ok)) printJudgement(judgement, `version ${version}`);
    const asked = { version, action: 'rollback', ...authorshipOf(flags) } as const;
    const activation = await activatePolicy(database, tenant, asked, seen);
    if (flags.json) printJson({ version, activation, diff: judgement?.diff ?? null });
    else noteActive(version, activation);
  });
}

function previousVersion(history: readonly Activation[]): number {
  const [newest] = history;
  const found = history.find(({ version }) => version !== newest?.version);
  if (found === undefined) throw usage('no other version has ever served: there is nothing to go back to');
  return found.version;
}

/** Compares the policy with the baseline. Without a manifest, `judgement` is null. */
async function judgeIfPossible(
  control: ControlQueries,
  tenant: string,
  version: number,
  text: string,
  flags: AuthorFlags,
): Promise<{ readonly seen: ActivationBase; readonly judgement: PolicyJudgement | null }> {
  const { manifestFile } = settingsOf(flags);
  if (flags.manifest === undefined && !existsSync(manifestFile)) {
    note(`there is no ${manifestFile}: each gateway checks the policy by itself`);
    return { seen: await controlVersions(control, tenant), judgement: null };
  }
  const ground = await policyBaseline(control, flags);
  return { seen: ground.seen, judgement: judgePolicy(text, `version ${version}`, ground.model) };
}

export interface MigrateFlags {
  readonly gateway?: readonly string[];
  readonly author?: readonly string[];
  readonly json?: true;
}

export async function runMigrate({ gateway = [], author = [], json }: MigrateFlags): Promise<void> {
  const { ran, stands } = await withControl(({ database }) => migrate(database, { gateway, author }));
  if (json) return printJson({ ran: ran.map(({ number, name }) => ({ number, name })), stands });
  for (const { number, name } of ran) print(`${number}: ${name}`);
  print(`osl_control stands at ${stands}`);
  for (const role of gateway) print(`${role} may serve`);
  for (const role of author) print(`${role} may write policies`);
}

/**
 * Proves the claims about a policy if the policy, or the one that it replaces, has `claims: required`.
 *
 * @param file path of the policy; null if it is a version in the control database
 * @param claims path of the file with claims; default: `policy.test.yaml` in the directory of the policy
 * @throws Failure unless all claims are proved
 */
async function requireClaims(
  text: string,
  file: string | null,
  { manifest, snapshot: before }: Model,
  claims: string | undefined,
): Promise<void> {
  const snapshot = compiledPolicy(text, file ?? 'policy', manifest);
  if (![snapshot, before].some((policy) => policy?.document.claims === 'required')) return;
  const named = claims ?? join(file === null ? '.' : dirname(file), TESTS_FILE);
  if (!existsSync(named))
    throw usage(
      `the policy says \`claims: required\`, and there is no ${named}\n  hint: name it with --claims`,
    );
  const { loadPolicyTests } = await import('../policy-tests/document.js');
  const { claimLines, proveClaims } = await import('../policy-proof/claims.js');
  const tests = await withTestsFile(named, () => loadPolicyTests(resolve(named)));
  if (tests.claims.length === 0)
    throw usage(`the policy says \`claims: required\`, and ${named} has no \`claims\``);
  const policy = { snapshot, catalog: manifest.catalog };
  const proven = await withInstalledSolver((starting) =>
    withTestsFile(named, () => proveClaims(tests, policy, starting)),
  );
  const open = proven.filter(({ verdict }) => verdict.kind !== 'proved');
  if (open.length === 0) {
    note(`${named}: all ${proven.length} claims are proved`);
    return;
  }
  const lines = open.flatMap((claim) => [...claimLines(claim)].map(visible));
  throw new Failure(
    EXIT.failed,
    [
      `error: ${named}: ${open.length} of ${proven.length} claims not proved, and the policy requires them`,
      ...lines,
    ].join('\n'),
  );
}
