import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import type { ServiceLog } from '../src/base/log.js';
import type { ReloadPart } from '../src/service/reload/reload.js';
import { isSet, readSetting, SETTINGS, type SettingValue } from '../src/service/settings/table.js';
import { systemFault, usage } from './exit.js';
import { visible } from './output.js';

type Level = SettingValue<'OSL_LOG_LEVEL'>;
const LEVELS = SETTINGS.OSL_LOG_LEVEL.type.words;
type LogFields = Readonly<Record<string, unknown>>;

/** Current level, shared by all logs of this process so that a reload changes it for all of them. */
let level: Level = 'warn';

/**
 * The operator's log on standard error, as JSON lines or readable text (OSL_LOG_FORMAT; default: text on a terminal).
 * The level comes from OSL_LOG_LEVEL or the file named by OSL_LOG_LEVEL_FILE.
 *
 * @throws Failure
 */
export function operatorLog(): ServiceLog {
  level = levelNow();
  const format = readSetting('OSL_LOG_FORMAT');
  const forPeople = format === 'text' || (format === 'auto' && process.stderr.isTTY);
  const write = forPeople ? writeLine : jsonWriter();
  const at =
    (name: Level) =>
    (message: string, fields: LogFields = {}): void => {
      if (LEVELS.indexOf(name) <= LEVELS.indexOf(level)) write(name, message, fields);
    };
  return Object.freeze({ info: at('info'), warn: at('warn'), error: at('error') });
}

/** Returns the part of a reload that rereads the level's file; none without a file, as environments do not change. */
export function logLevelPart(): readonly ReloadPart[] {
  if (!isSet('OSL_LOG_LEVEL_FILE')) return [];
  const prepare = () => {
    const next = levelNow();
    const apply = (): void => {
      level = next;
    };
    return { now: `log level ${next}`, kept: null, apply };
  };
  return [{ prepare }];
}

function levelNow(): Level {
  const file = readSetting('OSL_LOG_LEVEL_FILE');
  if (file === null) return readSetting('OSL_LOG_LEVEL');
  let text: string;
  try {
    text = readFileSync(file, 'utf8').trim();
  } catch (error) {
    const fault = systemFault(error);
    throw fault === null ? error : usage(`OSL_LOG_LEVEL_FILE: ${fault}`);
  }
  const { type } = SETTINGS.OSL_LOG_LEVEL;
  return type.parse(text, '', () => {
    throw usage(`the file ${file} of OSL_LOG_LEVEL_FILE must hold ${type.takes}, not \`${text}\``);
  });
}

/** Maximum bytes buffered while the log cannot be written; further lines are dropped. */
const MOST_UNWRITTEN = 1_048_576;

type WriteLogLine = (level: Level, message: string, fields: LogFields) => void;

function jsonWriter(): WriteLogLine {
  const options = { level: 'info', base: { name: 'osl' }, timestamp: pino.stdTimeFunctions.isoTime };
  const destination = pino.destination({ dest: 2, sync: true, maxLength: MOST_UNWRITTEN });
  destination.on('error', () => undefined); // a broken log must not end a serving process
  const log = pino(options, destination);
  return (name, message, fields) => log[name](fields, message);
}

function writeLine(name: Level, message: string, fields: LogFields): void {
  process.stderr.write(`${logLine(name, message, fields)}\n`);
}

/**
 * Formats a line such as `11:42:07 warn  upstream error  connector=demo sqlstate=22012`. Only the first line of each
 * field is shown, except for `stack` and unless OSL_DEBUG is set.
 */
function logLine(level: Level, message: string, fields: LogFields): string {
  const time = new Date().toTimeString().slice(0, 8);
  const whole = readSetting('OSL_DEBUG');
  const pairs = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    if (name === 'stack') return text.split('\n').map(visible).join('\n');
    return `${name}=${visible(whole ? text : (text.split('\n')[0] ?? ''))}`;
  });
  return [`${time} ${level.padEnd(5)} ${visible(message)}`, ...pairs].join('  ');
}
