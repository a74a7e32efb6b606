import { nearest, ready } from 'osl-compiler';
import { version } from '../../src/base/package-root.js';
import { messageOf } from '../../src/base/thrown.js';
import { DEFAULT_MIN_LENGTH, openRedactors, probableWords } from '../../src/content/index.js';
import { type Survey, surveyPostgres } from '../../src/engine/index.js';
import {
  CODES,
  type Connector,
  type Facet,
  type Manifest,
  ManifestProblems,
  systemUrlVariable,
  urlVariable,
} from '../../src/model/manifest/index.js';
import type { Model } from '../../src/model/served-model.js';
import { connectorUrl } from '../../src/service/connector-url.js';
import { wordText } from '../../src/service/indexing/index-content.js';
import { loadServed } from '../../src/service/model.js';
import { SECTIONS, SETTINGS, type SettingName, settingsReader } from '../../src/service/settings/table.js';
import type { SettingDefinition } from '../../src/service/settings/types.js';
import type { Settings } from '../../src/service/settings.js';
import { fetchHttp } from '../client.js';
import { EXIT, usage } from '../exit.js';
import { MISSING_FILES, plainText, type ServerFlags, settingsBesideServer } from '../flags.js';
import { counted, print, printJson, visible } from '../output.js';
import { inspectDatabases } from './database.js';
import { type DoctorFinding, fail, failed, ok, skipped, warn } from './finding.js';
import {
  archiveFindings,
  dashboardFindings,
  dataDirFindings,
  issuerFindings,
  issuersFileFindings,
  keyFindings,
  poolFindings,
  portFindings,
  startFindings,
  storeFindings,
  tlsFindings,
} from './machine.js';
import { standbyFindings } from './standbys.js';

export async function runDoctor(flags: ServerFlags): Promise<void> {
  reportFindings(await doctorFindings(settingsBesideServer(flags)), flags);
}

export async function doctorFindings(settings: Settings): Promise<readonly DoctorFinding[]> {
  await ready();
  return [
    ok('program', `osl ${version()}, Node ${process.versions.node}`),
    ...(await modelFindings(settings)),
    ...dataDirFindings(settings),
    ...keyFindings(settings),
    ...(await archiveFindings(settings)),
    ...(await storeFindings(settings)),
    ...(await portFindings(settings)),
    ...tlsFindings(settings),
    ...issuerFindings(settings),
    ...(await issuersFileFindings(settings)),
    ...(await dashboardFindings(settings)),
    ...(await startFindings(settings)),
  ];
}

async function modelFindings(settings: Settings): Promise<readonly DoctorFinding[]> {
  let model: Model;
  try {
    model = await loadServed(settings);
  } catch (error) {
    return [
      ...fileFindings(error),
      skipped('databases', 'not checked: the manifest does not load'),
      ...unknownSettings(null),
    ];
  }
  const { manifest, snapshot } = model;
  const counts = `${manifest.entities.size} entities, ${snapshot?.subjects.size ?? 0} subjects`;
  const { findings } = await inspectDatabases(model, settings);
  const pools = await poolFindings(settings, manifest);
  const standbys = pools.length === 0 ? await standbyFindings(model, settings) : [];
  const words = await wordFindings(manifest);
  return [
    ok('files', `manifest and policy load: ${counts}`),
    ...findings,
    ...pools,
    ...standbys,
    ...words,
    ...unknownSettings(manifest),
  ];
}

const MOST_FAULTS = 20;

function fileFindings(error: unknown): readonly DoctorFinding[] {
  const problems = [error, error instanceof Error ? error.cause : null].find(
    (e) => e instanceof ManifestProblems,
  );
  if (problems === undefined) return [failed('files', error)];
  const more = problems.diagnostics.length - MOST_FAULTS;
  return [
    ...problems.diagnostics.slice(0, MOST_FAULTS).map(({ file, range, code, message, hint }) => {
      const { line, column } = range.start;
      return fail('files', `${file}:${line}:${column}: ${code} ${message}`, hint ?? HINTS.get(code) ?? PLACE);
    }),
    ...(more > 0 ? [fail('files', `and ${more} more faults`, '`osl validate` shows them all')] : []),
  ];
}

const PLACE = '`osl validate` shows the place';
const HINTS: ReadonlyMap<string, string> = new Map([[CODES.unreadable, MISSING_FILES]]);

const SIGNS = { ok: 'ok  ', warn: 'warn', fail: 'FAIL', skipped: '-   ' } as const;

export function reportFindings(findings: readonly DoctorFinding[], { json }: { readonly json?: true }): void {
  const count = (state: DoctorFinding['state']): number => findings.filter((f) => f.state === state).length;
  if (count('fail') > 0) process.exitCode = EXIT.failed;
  if (json) {
    printJson({ ok: count('fail') === 0, findings });
    return;
  }
  for (const { about, state, message, hint } of findings) {
    print(`${SIGNS[state]}  ${about}: ${visible(message)}`);
    if (hint !== null) print(`      hint: ${visible(hint)}`);
  }
  print(
    `\n${counted(count('fail'), 'failure', 'failures')}, ${counted(count('warn'), 'warning', 'warnings')}`,
  );
}

const HINT = 'if it is an ordinary word, list it under `exceptions` and run `osl index`';

/**
 * Reports redacted facet values that are probably ordinary words. Reads them with the system credentials; another
 * finding reports credentials that do not work.
 */
async function wordFindings(manifest: Manifest): Promise<readonly DoctorFinding[]> {
  const findings: DoctorFinding[] = [];
  for (const connector of manifest.connectors.values()) {
    const facets = [...manifest.facets.values()].filter((f) => f.connector === connector.name);
    const survey = facets.length === 0 || connector.kind === 'pglite' ? null : await surveyOf(connector);
    if (survey === null) continue;
    try {
      for (const facet of facets)
        for (const text of await wordsOf(survey, manifest, facet))
          findings.push(warn(`facet ${facet.name}`, text, HINT));
    } catch {
      // Sources that cannot be read are reported by the database checks.
    } finally {
      survey.close();
    }
  }
  return findings;
}

async function surveyOf(connector: Connector): Promise<Survey | null> {
  try {
    const url = await connectorUrl(process.env, systemUrlVariable(connector));
    return url === null ? null : await surveyPostgres(url);
  } catch {
    return null;
  }
}

async function wordsOf({ system }: Survey, manifest: Manifest, facet: Facet): Promise<ReadonlySet<string>> {
  const texts = new Set<string>();
  for (const version of facet.versions.values()) {
    if (version.redact.length === 0) continue;
    const redactors = await openRedactors(system, manifest, facet, version, DEFAULT_MIN_LENGTH);
    for (const word of await probableWords(system, facet, redactors)) texts.add(wordText(facet.name, word));
  }
  return texts;
}

const ABOUT = 'settings';
const NAMES = Object.keys(SETTINGS).filter(isSetting);

function isSetting(name: string): name is SettingName {
  return Object.hasOwn(SETTINGS, name);
}

export function faultySettings(): readonly DoctorFinding[] {
  const read = settingsReader(process.env, process.cwd());
  return NAMES.filter((name) => name.startsWith('OSL_')).flatMap((name) => {
    try {
      read(name);
      return [];
    } catch (error) {
      return [fail(ABOUT, messageOf(error))];
    }
  });
}

/** Unknown names that are not reported: secrets that the operator's files refer to, and variables used by tests. */
const NAMED_ELSEWHERE = /^OSL_TEST_|(_KEY|_SECRET)(_FILE)?$|_SECRET_/;

/** Unknown variables that begin with `OSL_`, most of which are misspelled. */
export function unknownSettings(manifest: Manifest | null): readonly DoctorFinding[] {
  const named = namedBy(manifest);
  return (
    Object.keys(process.env)
      .filter((name) => name.startsWith('OSL_') && !isSetting(name) && !NAMED_ELSEWHERE.test(name))
      .filter((name) => !named.some((known) => name.startsWith(known)))
      .map((name) => [name, nearest(name, NAMES)] as const)
      // Without a manifest, any name may be that of a connector's URL.
      .filter(([, near]) => manifest !== null || near !== null)
      .map(([name, near]) => {
        const hint = near === null ? '`osl config list` shows every setting' : `perhaps you meant ${near}`;
        const effect = manifest === null ? ', unless the manifest names it' : ': it has no effect';
        return warn(ABOUT, `unknown setting ${name}${effect}`, hint);
      })
  );
}

function namedBy(manifest: Manifest | null): readonly string[] {
  if (manifest === null) return ['OSL_POSTGRES_URL'];
  const { connectors, facets, rerankers } = manifest;
  const models = [...facets.values()].flatMap(({ embedding }) => embedding.endpoint?.urlEnv ?? []);
  return [
    ...[...connectors.values()].flatMap((c) => [urlVariable(c), ...(c.standbys?.urlEnvs ?? [])]),
    ...models,
    ...[...rerankers.values()].map(({ urlEnv }) => urlEnv),
  ];
}

export async function runConfigCheck(flags: ServerFlags): Promise<void> {
  reportFindings(await checkFindings(flags), flags);
}

async function checkFindings(flags: ServerFlags): Promise<readonly DoctorFinding[]> {
  const faults = faultySettings();
  if (faults.length > 0) return [...faults, ...unknownSettings(null)];
  try {
    const settings = settingsBesideServer(flags);
    const findings = await doctorFindings(settings);
    return [ok('settings', 'every setting is valid'), ...findings, ...(await urlFindings(settings))];
  } catch (error) {
    return [failed('settings', error), ...unknownSettings(null)];
  }
}

/** Prints settings with their current values. @throws Failure for an unknown name */
export function runConfigList(names: readonly string[], flags: { readonly json?: true }): void {
  const known = SECTIONS.flatMap(({ title, settings }) =>
    Object.entries(settings).map(([name, setting]) => ({ title, name, setting })),
  );
  const unknown = names.find((name) => !known.some((one) => one.name === name));
  if (unknown !== undefined) {
    const near = nearest(
      unknown,
      known.map(({ name }) => name),
    );
    throw usage(`there is no setting ${unknown}${near === null ? '' : `: perhaps you meant ${near}`}`);
  }
  const listed = known.filter(({ name }) => names.length === 0 || names.includes(name));
  if (flags.json) {
    printJson({ settings: listed.map(({ name, setting }) => settingJson(name, setting)) });
    return;
  }
  for (const title of new Set(listed.map((one) => one.title))) {
    print(`${title}\n`);
    for (const { name, setting } of listed.filter((one) => one.title === title)) {
      const { value, default: initial, takes, description } = settingJson(name, setting);
      const now =
        value === null
          ? initial === null || initial === ''
            ? 'not set'
            : `${initial} (default)`
          : visible(value);
      print(`  ${name} = ${now}\n      ${description}\n      ${takes}\n`);
    }
  }
}

function settingJson(name: string, { type, default: initial, description }: SettingDefinition<unknown>) {
  const given = process.env[name] ?? '';
  return {
    name,
    value: given === '' ? null : type.isSecret ? '(hidden)' : given,
    default: initial,
    takes: plainText(type.isList ? `${type.takes}, separated by commas` : type.takes),
    description: plainText(description),
  };
}

/** Checks that the model servers and the collector respond; sends no key. */
async function urlFindings({ content, otlp }: Settings): Promise<readonly DoctorFinding[]> {
  const urls = [
    ['embeddings', content.embeddings?.url],
    ['chat', content.chat?.url],
    ['collector', otlp?.endpoint],
  ] as const;
  return Promise.all(urls.flatMap(([about, url]) => (url === undefined ? [] : [urlFinding(about, url)])));
}

async function urlFinding(about: string, url: string): Promise<DoctorFinding> {
  const { origin } = new URL(url);
  try {
    await fetchHttp(url, { headers: {}, signal: AbortSignal.timeout(5_000) });
    return ok(about, `${origin} answers`);
  } catch (error) {
    return warn(about, `${origin} does not answer: ${messageOf(error)}`);
  }
}
