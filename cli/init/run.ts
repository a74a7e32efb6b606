import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { MANIFEST_SCHEMA, POLICY_SCHEMA, systemUrlVariable } from '../../src/model/manifest/index.js';
import {
  clearingScript,
  ForeignRowSecurity,
  MissingPrivilege,
  writeRowSecurity,
} from '../../src/model/row-security/index.js';
import { tenantKeys } from '../../src/service/keys.js';
import { loadServed } from '../../src/service/model.js';
import { rowSecurityDesign, rowSecurityKey } from '../../src/service/row-security.js';
import { EXIT, Failure, usage } from '../exit.js';
import { settingsOf } from '../flags.js';
import { counted, note } from '../output.js';
import {
  draftPolicy,
  makeReader,
  manifestYaml,
  policyTestsYaml,
  policyYaml,
  type ReaderRole,
  tableOf,
} from '../proposal/index.js';
import { runningServer } from '../server-file.js';
import { type ConnectedDatabase, connectTo, roleToCreate, type UrlSource } from './connect.js';
import { type Design, designModel } from './design.js';
import { assumedPrompt, type InitFlags, type Prompt, terminalPrompt } from './prompt.js';
import { type FirstAnswer, firstAnswer, type InitOutcome, report, reportJson } from './report.js';

export async function runInit(folder: string, flags: InitFlags): Promise<void> {
  const prompt = promptOf(flags);
  try {
    const outcome = await init(resolve(process.cwd(), folder), flags, prompt);
    if (flags.json) reportJson(outcome);
    else report(outcome);
  } finally {
    prompt.close();
  }
}

function promptOf(flags: InitFlags): Prompt {
  if (flags.yes) return assumedPrompt();
  if (process.stdin.isTTY) return terminalPrompt();
  throw usage('standard input is not a terminal: --yes takes the default of every question');
}

async function init(dir: string, flags: InitFlags, prompt: Prompt): Promise<InitOutcome> {
  await mayWrite(dir, flags, prompt);
  const connected = await connectTo(flags, prompt);
  const { survey } = connected;
  try {
    const started = performance.now();
    const reader = await roleToCreate(connected, flags, prompt);
    if (flags.rowSecurity && reader === null)
      throw usage('--row-security: its policies hold for a role that owns nothing: --create-role makes one');
    const design = await designModel(connected, reader, flags, prompt);
    if (!(await prompt.confirm(`\nWrite ${summary(design)} to ${dir}?`, true))) {
      throw new Failure(EXIT.failed, 'stopped: nothing was written');
    }
    const outcome = await createProject(dir, connected, reader, design);
    return { ...outcome, seconds: (performance.now() - started) / 1000 };
  } finally {
    survey.close();
  }
}

/** @throws Failure if a server uses the folder's data directory, or existing files must not be overwritten */
async function mayWrite(dir: string, flags: InitFlags, prompt: Prompt): Promise<void> {
  const server = runningServer(dataDirOf(dir));
  if (server !== null)
    throw usage(`a server runs in ${dataDirOf(dir)} (process ${server.pid}): stop it first`);
  const there = ['manifest.yaml', 'policy.yaml'].filter((name) => existsSync(join(dir, name)));
  if (there.length === 0 || flags.force) return;
  const what = `${there.join(' and ')} in ${dir}`;
  if (prompt.assumes) throw usage(`${what} would be overwritten: --force does that`);
  if (await prompt.confirm(`Overwrite ${what}?`, false)) return;
  throw new Failure(EXIT.failed, 'stopped: nothing was written');
}

function summary({ drafted, role, subject }: Design): string {
  const { entities, bridges } = drafted.manifest;
  const what = `${counted(entities.size, 'entity', 'entities')} and ${counted(bridges.size, 'bridge', 'bridges')}`;
  return `${what}, readable by role ${role} of ${subject},`;
}

export function dataDirOf(dir: string): string {
  return join(dir, '.osl');
}

/**
 * Writes everything to a staging area, answers a first query from it, and moves the files into place; undoes
 * everything on failure.
 */
export async function createProject(
  dir: string,
  connected: ConnectedDatabase,
  reader: string | null,
  design: Design,
): Promise<Omit<InitOutcome, 'seconds'>> {
  const stage = openStage(dir, dataDirOf(dir), textsOf(design));
  let role: ReaderRole | null = null;
  let stands = false;
  const undo = async (): Promise<void> => {
    stage.discard();
    if (stands) await dropRowPolicies(connected);
    await role?.drop();
  };
  const interrupted = (): void => {
    void undo().finally(() => {
      note('stopped: nothing was written');
      process.exit(EXIT.interrupted);
    });
  };
  for (const signal of SIGNALS) process.once(signal, interrupted);
  try {
    if (reader !== null) role = await readerOf(connected, reader, design);
    if (reader !== null && design.rowSecurity) {
      await writeRowPolicies(stage, connected, reader);
      stands = true;
    }
    const first = await askFirst(stage, design, role?.url ?? connected.url);
    stage.addTests(
      policyTestsYaml({ subject: design.subject, osql: first.osql, columns: first.answer.columns }),
    );
    const source: UrlSource = role === null ? connected.source : { kind: 'given', name: design.urlEnv };
    return { dir, files: stage.commit(), design, source, readerUrl: role?.url ?? null, first };
  } catch (error) {
    await undo();
    throw error;
  } finally {
    for (const signal of SIGNALS) process.off(signal, interrupted);
  }
}

const SIGNALS = ['SIGINT', 'SIGTERM'] as const;

function textsOf({ drafted, keyed, tenant, role, subject, rows, urlEnv }: Design): StageTexts {
  const counted = keyed.candidates.filter((c) => keyed.counted.has(tableOf(c))).map((c) => c.name);
  const lost = new Map(
    keyed.candidates.flatMap((c) => {
      const links = drafted.lostLinks.filter(({ table }) => table === tableOf(c));
      return links.length === 0 ? [] : [[c.name, links] as const];
    }),
  );
  return {
    manifest: manifestYaml(drafted.document, new Set(counted), lost),
    policy: policyYaml(draftPolicy(drafted.manifest, { tenant, role, subject, rows })),
    envExample: envExample(urlEnv),
  };
}

function envExample(urlEnv: string): string {
  return `# Copy to .env, which is kept out of git, and fill in. A file each will do too: ${urlEnv}_FILE names it.

# A role that may read the tables of the manifest, and nothing else. Questions are asked as this one.
${urlEnv}=postgres://osl_reader:PASSWORD@HOST:5432/DATABASE

# A second role, for what is the gateway's own: text facets (osl index, RETRIEVE), osl discover, suggestions and
# candidates. Questions about tables do without. Its SQL: "System credentials" in docs/operations.md.
#${systemUrlVariable({ urlEnv })}=postgres://osl_system:PASSWORD@HOST:5432/DATABASE
`;
}

function readerOf(
  { survey, url }: ConnectedDatabase,
  name: string,
  { drafted, keyed }: Design,
): Promise<ReaderRole> {
  const tables = drafted.document.connectors['db']?.tables ?? {};
  const adopted = keyed.candidates.filter((c) => Object.hasOwn(tables, tableOf(c)));
  return makeReader(survey.system, name, adopted, url);
}

/**
 * Writes the row-security policies.
 *
 * @throws Failure if the role may not install them, or if those of another gateway are installed
 */
async function writeRowPolicies(stage: Stage, { survey }: ConnectedDatabase, reader: string): Promise<void> {
  const { manifestFile, policyFile, dataDir } = stage;
  const model = await loadServed({ ...settingsOf({}), manifestFile, policyFile, dataDir });
  const key = tenantKeys(dataDir);
  try {
    for (const connector of model.manifest.connectors.values()) {
      const design = rowSecurityDesign(connector, reader, model);
      await writeRowSecurity(survey.system, design, rowSecurityKey(key, connector.name));
    }
  } catch (error) {
    if (error instanceof MissingPrivilege || error instanceof ForeignRowSecurity)
      throw usage(`--row-security: ${error.message}`);
    throw error;
  }
}

/** INVARIANT: runs before the role is dropped, since that drops its policies but leaves row security enabled. */
async function dropRowPolicies({ survey }: ConnectedDatabase): Promise<void> {
  await survey.system.transaction(async (tx) => {
    for (const statement of clearingScript()) await tx.script(statement);
  });
}

function askFirst(stage: Stage, { urlEnv, subject }: Design, url: string): Promise<FirstAnswer> {
  process.env[urlEnv] = url; // connectors read their URLs from the environment, as in `osl serve`
  const { manifestFile, policyFile, dataDir } = stage;
  return firstAnswer({ ...settingsOf({}), manifestFile, policyFile, dataDir }, subject);
}

/** Files in the order in which they are moved into place: the manifest last. */
const FILES = ['manifest.schema.json', 'policy.schema.json', 'policy.yaml', 'manifest.yaml'] as const;

/** Files written next to their final location, to appear there together or not at all. */
interface Stage {
  readonly manifestFile: string;
  readonly policyFile: string;
  /** Directory for keys and the audit log; the folder's existing one, if any. */
  readonly dataDir: string;
  /** Adds initial policy tests, which are based on an answered query. */
  addTests(text: string): void;
  /** Moves everything into place; returns the names of the files, relative to the folder. */
  commit(): readonly string[];
  /** Removes everything that was not committed. */
  discard(): void;
}

interface StageTexts {
  readonly manifest: string;
  readonly policy: string;
  readonly envExample: string;
}

/** Files that are never overwritten, because their content belongs to the user. */
const KEPT = ['.env.example', 'policy.test.yaml'] as const;

/** Writes the files to a staging folder inside `dir`, creating `dir` if necessary. @throws system errors */
function openStage(dir: string, dataDir: string, texts: StageTexts): Stage {
  const made = !existsSync(dir);
  mkdirSync(dir, { recursive: true });
  const place = mkdtempSync(join(dir, '.osl-init-'));
  const fresh = !existsSync(dataDir);
  const [manifestFile, policyFile] = [join(place, 'manifest.yaml'), join(place, 'policy.yaml')];
  writeFileSync(manifestFile, texts.manifest);
  writeFileSync(policyFile, texts.policy);
  writeFileSync(join(place, KEPT[0]), texts.envExample);
  // For editors: the first line of each file refers to its schema.
  writeFileSync(join(place, 'manifest.schema.json'), `${JSON.stringify(MANIFEST_SCHEMA, null, 2)}\n`);
  writeFileSync(join(place, 'policy.schema.json'), `${JSON.stringify(POLICY_SCHEMA, null, 2)}\n`);
  let over = false;
  return {
    manifestFile,
    policyFile,
    dataDir: fresh ? join(place, 'data') : dataDir,
    addTests(text) {
      writeFileSync(join(place, KEPT[1]), text);
    },
    commit() {
      // INVARIANT: this is synchronous, so that no signal handler runs in between; the manifest comes last.
      const ignored = updateGitignore(dir, dataDir, place);
      if (fresh) renameSync(join(place, 'data'), dataDir);
      const added = KEPT.filter((name) => existsSync(join(place, name)) && !existsSync(join(dir, name)));
      for (const name of [...added, ...FILES]) renameSync(join(place, name), join(dir, name));
      over = true;
      rmSync(place, { recursive: true });
      return [...FILES.toReversed(), ...added, ...(ignored ? ['.gitignore'] : [])];
    },
    discard() {
      if (over) return;
      over = true;
      rmSync(place, { recursive: true, force: true });
      if (made) rmdirSync(dir);
    },
  };
}

/** Adds the data directory and `.env` to .gitignore; returns false if nothing was added. */
function updateGitignore(dir: string, dataDir: string, place: string): boolean {
  const inside = relative(dir, dataDir);
  if (inside.startsWith('..')) return false;
  const file = join(dir, '.gitignore');
  const before = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const lines = new Set(before.split('\n').map((line) => line.trim().replace(/^\/|\/$/g, '')));
  const missing = [inside, '.env'].filter((line) => !lines.has(line));
  if (missing.length === 0) return false;
  const start = before === '' || before.endsWith('\n') ? before : `${before}\n`;
  const next = join(place, 'gitignore');
  if (existsSync(file)) copyFileSync(file, next); // the copy keeps the file's mode
  const entries = missing.map((line) => (line === inside ? `/${line}/` : line));
  writeFileSync(next, `${start}# keys, audit log and secrets of OSL Gateway\n${entries.join('\n')}\n`);
  renameSync(next, file);
  return true;
}
