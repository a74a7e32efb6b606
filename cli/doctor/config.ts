import { nearest } from 'osl-compiler';
import { messageOf } from '../../src/base/thrown.js';
import { SECTIONS } from '../../src/service/settings/table.js';
import type { SettingDefinition } from '../../src/service/settings/types.js';
import type { Settings } from '../../src/service/settings.js';
import { fetchHttp } from '../client.js';
import { usage } from '../exit.js';
import { plainText, type ServerFlags, settingsBesideServer } from '../flags.js';
import { print, printJson, visible } from '../output.js';
import { type DoctorFinding, failed, ok, warn } from './finding.js';
import { doctorFindings, faultySettings, reportFindings, unknownSettings } from './run.js';

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
