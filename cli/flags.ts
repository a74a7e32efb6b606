import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { isSet, SETTINGS, type SettingName, type SettingValue } from '../src/service/settings/table.js';
import { splitList } from '../src/service/settings/types.js';
import { type Settings, settingsFrom } from '../src/service/settings.js';
import { usage } from './exit.js';
import { runningServer } from './server-file.js';

export interface ServerFlags {
  readonly manifest?: string;
  readonly policy?: string;
  readonly dataDir?: string;
  readonly httpPort?: number;
  readonly pgPort?: number;
  readonly host?: string;
  readonly workers?: SettingValue<'OSL_WORKERS'>;
  readonly console?: SettingValue<'OSL_CONSOLE'>;
  readonly json?: true;
}

/** Settings from the environment, overridden by flags. @throws StartProblem */
export function settingsOf(flags: ServerFlags): Settings {
  const path = (value: string): string => resolve(process.cwd(), value);
  return settingsFrom(process.env, process.cwd(), {
    ...(flags.manifest !== undefined && { manifestFile: path(flags.manifest) }),
    ...(flags.policy !== undefined && { policyFile: path(flags.policy) }),
    ...(flags.dataDir !== undefined && { dataDir: path(flags.dataDir) }),
    ...(flags.httpPort !== undefined && { httpPort: flags.httpPort }),
    ...(flags.pgPort !== undefined && { pgPort: flags.pgPort }),
    ...(flags.host !== undefined && { host: flags.host }),
    ...(flags.workers !== undefined && { workers: flags.workers }),
    ...(flags.console !== undefined && { console: flags.console }),
  });
}

/**
 * Like `settingsOf`, for commands that read a server's files. If no file is named and the current folder has no
 * manifest, takes the files of the server that uses the data directory (such as the demo's).
 *
 * @throws StartProblem
 */
export function settingsBesideServer(flags: ServerFlags): Settings {
  const settings = settingsOf(flags);
  if (namesFiles(flags) || existsSync(settings.manifestFile)) return settings;
  const record = runningServer(settings.dataDir);
  if (record === null) return settings;
  const { manifestFile, policyFile } = record;
  return { ...settings, manifestFile, policyFile };
}

/** Like `settingsBesideServer`, but a manifest is required. @throws StartProblem; Failure without a manifest */
export function settingsOfModel(flags: ServerFlags): Settings {
  const settings = settingsBesideServer(flags);
  const { manifestFile, dataDir } = settings;
  if (namesFiles(flags) || existsSync(manifestFile)) return settings;
  throw usage(`there is no ${manifestFile}, and no server runs on ${dataDir}\n  hint: ${MISSING_FILES}`);
}

export const MISSING_FILES =
  '--manifest and --policy name others, --data-dir the directory of a server that runs; `osl init` makes both of a Postgres';

function namesFiles({ manifest, policy }: ServerFlags): boolean {
  return Boolean(manifest) || Boolean(policy) || isSet('OSL_MANIFEST') || isSet('OSL_POLICY');
}

/** If a manifest is named but no policy, adds the `policy.yaml` in the manifest's folder. */
export function besideManifest(flags: ServerFlags): ServerFlags {
  if (flags.manifest === undefined || flags.policy !== undefined || isSet('OSL_POLICY')) return flags;
  return { ...flags, policy: join(dirname(flags.manifest), 'policy.yaml') };
}

/**
 * Returns the option for a setting, with the argument, description and values from the settings table.
 *
 * @param initial default, if it differs from the setting's
 */
export function settingOption(name: SettingName, initial = SETTINGS[name].default): Option {
  return optionOf(name, ` (${name}${initial === null ? '' : `; default ${initial}`})`);
}

/** Like `settingOption`, but commander itself reads the environment variable. */
export function environmentOption(name: SettingName): Option {
  return optionOf(name, '').env(name);
}

function optionOf(name: SettingName, suffix: string): Option {
  const { flag, type, description } = SETTINGS[name];
  const option = new Option(flag ?? '', phrase(description) + suffix);
  if (type.words.length > 0) return option.choices(type.words);
  return option.argParser((text) => {
    const value = type.parse(text, '', () => {
      throw new InvalidArgumentError(`It must be ${type.takes}.`);
    });
    return typeof value === 'number' ? value : text;
  });
}

/** Shortens a Markdown description for help to its first sentence and any sentences about a single value. */
function phrase(markdown: string): string {
  const [first = '', ...more] = markdown.split(/(?<=\.) /);
  const sentences = [
    first.replace(/^(\W*)([A-Z])(?=[a-z])/, (_, mark, letter) => `${mark}${letter.toLowerCase()}`),
  ];
  sentences.push(...more.filter((sentence) => /^(\d+|`[^`]*`): /.test(sentence)));
  return plainText(sentences.map((sentence) => sentence.replace(/\.$/, '')).join('; '));
}

export function plainText(markdown: string): string {
  return markdown
    .replace(/ \[More\]\([^)]*\)\./g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('`', '');
}

export function dataDirOption(): Option {
  return settingOption('OSL_DATA_DIR');
}

export function manifestOption(): Option {
  return settingOption('OSL_MANIFEST');
}

export function policyOption(): Option {
  return settingOption('OSL_POLICY');
}

export function serverOption(): Option {
  return environmentOption('OSL_SERVER').argParser(restAddress);
}

export function restAddress(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('It must be the address of a server, such as https://osl.example.com.');
}

export function addCallerOptions(command: Command): Command {
  return command
    .addOption(settingOption('OSL_TOKEN'))
    .addOption(settingOption('OSL_SUBJECT').conflicts('token'))
    .addOption(
      new Option('--chain <names>', 'mint one for the last of these, who acts for the others')
        .argParser(splitList)
        .conflicts('token'),
    );
}

export function addListenOptions(command: Command): Command {
  const names = ['OSL_DATA_DIR', 'OSL_HTTP_PORT', 'OSL_PG_PORT', 'OSL_HOST'] as const;
  for (const name of names) command.addOption(settingOption(name));
  return command;
}

export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}
