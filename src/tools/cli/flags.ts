import { existsSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { type Command, InvalidArgumentError, Option } from 'commander';
import { CONSOLES, type ConsoleSettings } from '../../service/settings/console.js';
import { MOST_WORKERS, type Settings, settingsFrom } from '../../service/settings.js';
import { usage } from './exit.js';
import { runningServer } from './server-file.js';

/** Flags that say what a server serves, and where. */
export interface ServerFlags {
  readonly manifest?: string;
  readonly policy?: string;
  readonly dataDir?: string;
  readonly httpPort?: number;
  readonly pgPort?: number;
  readonly host?: string;
  readonly workers?: number | 'auto';
  readonly console?: ConsoleSettings;
}

/** Settings from the environment, with the flags above them. @throws StartProblem */
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
 * The same for a command that reads the files of a server and starts none: where none is named and none is here, those of
 * the server that runs on the data directory. The demo's are in no user's folder. @throws StartProblem
 */
export function settingsBesideServer(flags: ServerFlags): Settings {
  const settings = settingsOf(flags);
  if (namesFiles(flags) || existsSync(settings.manifestFile)) return settings;
  const record = runningServer(settings.dataDir);
  if (record === null) return settings;
  const { manifestFile, policyFile } = record;
  return { ...settings, manifestFile, policyFile };
}

/** The same for a command that can do nothing without them. @throws StartProblem, Failure where there is no manifest */
export function settingsOfModel(flags: ServerFlags): Settings {
  const settings = settingsBesideServer(flags);
  const { manifestFile, dataDir } = settings;
  if (namesFiles(flags) || existsSync(manifestFile)) return settings;
  throw usage(`there is no ${manifestFile}, and no server runs on ${dataDir}\n  hint: ${MISSING_FILES}`);
}

/** Hint for a manifest or a policy that is not where it is looked for. */
export const MISSING_FILES =
  '--manifest and --policy name others, --data-dir the directory of a server that runs; `osl init` makes both of a Postgres';

function namesFiles({ manifest, policy }: ServerFlags): boolean {
  return [manifest, policy, process.env['OSL_MANIFEST'], process.env['OSL_POLICY']].some(Boolean);
}

/** The policy beside a manifest that was named, where no policy was. */
export function besideManifest(flags: ServerFlags): ServerFlags {
  if (flags.manifest === undefined || flags.policy !== undefined || process.env['OSL_POLICY']) return flags;
  return { ...flags, policy: join(dirname(flags.manifest), 'policy.yaml') };
}

export function dataDirOption(): Option {
  return new Option('--data-dir <dir>', 'keys, database and audit log (OSL_DATA_DIR; default .osl)');
}

export function manifestOption(): Option {
  return new Option('--manifest <file>', 'what there is (OSL_MANIFEST; default manifest.yaml)');
}

export function policyOption(): Option {
  return new Option('--policy <file>', 'who may see it (OSL_POLICY; default policy.yaml)');
}

/** `--server`: another server than that of the data directory. */
export function serverOption(): Option {
  return new Option('--server <url>', 'another server than that of the data directory')
    .env('OSL_SERVER')
    .argParser(restAddress);
}

/** A parser of REST addresses; gives them without a `/` at the end. */
export function restAddress(text: string): string {
  if (URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)) return text.replace(/\/+$/, '');
  throw new InvalidArgumentError('It must be the address of a server, such as https://osl.example.com.');
}

/** `--token --subject --chain`: who asks. */
export function addCallerOptions(command: Command): Command {
  return command
    .option('--token <token>', 'the token to ask with (OSL_TOKEN)')
    .addOption(
      new Option('--subject <name>', 'mint a token for this subject (OSL_SUBJECT)').conflicts('token'),
    )
    .addOption(
      new Option('--chain <names>', 'mint one for the last of these, who acts for the others')
        .argParser(names)
        .conflicts('token'),
    );
}

/** `--data-dir --http-port --pg-port --host`. */
export function addListenOptions(command: Command): Command {
  return command
    .addOption(dataDirOption())
    .addOption(portOption('--http-port <port>', 'REST; 0 takes a free one (OSL_HTTP_PORT; default 8642)'))
    .addOption(portOption('--pg-port <port>', 'Postgres wire; 0 as above (OSL_PG_PORT; default 15432)'))
    .option('--host <address>', 'address to listen on (OSL_HOST; default 127.0.0.1)');
}

/** `--workers`. */
export function workersOption(): Option {
  const count = wholeNumber(1, MOST_WORKERS);
  const about = 'processes that share the ports; auto: one for each processor (OSL_WORKERS; default 1)';
  return new Option('--workers <n|auto>', about).argParser((given) =>
    given === 'auto' ? given : count(given),
  );
}

/** `--console`. */
export function consoleOption(fallback: ConsoleSettings): Option {
  const about = `pages at /console; admin: with what admins do (OSL_CONSOLE; default ${fallback})`;
  return new Option('--console <off|on|admin>', about).choices(CONSOLES);
}

function portOption(flags: string, description: string): Option {
  return new Option(flags, description).argParser(wholeNumber(0, 65_535));
}

/** A parser of whole numbers from `least` to `most`. */
export function wholeNumber(least: number, most: number): (text: string) => number {
  return (text) => {
    const value = Number(text);
    if (/^\d+$/.test(text) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };
}

/** A parser of lists: names between commas. The empty text is the empty list. */
export function names(text: string): readonly string[] {
  return text
    .split(',')
    .map((name) => name.trim())
    .filter((name) => name !== '');
}
