import { pino } from 'pino';
import type { ServiceLog } from '../../base/log.js';
import { usage } from './exit.js';
import { visible } from './output.js';

const LEVELS = ['error', 'warn', 'info'] as const;
type Level = (typeof LEVELS)[number];
type Fields = Readonly<Record<string, unknown>>;

/**
 * The operator's log on standard error: short lines on a terminal, JSON otherwise. Warnings and errors, or what
 * `OSL_LOG_LEVEL` (`error`, `warn`, `info`) says. @throws Failure
 */
export function operatorLog(): ServiceLog {
  const level = levelOf(process.env['OSL_LOG_LEVEL']);
  return process.stderr.isTTY ? terminalLog(level) : jsonLog(level);
}

function levelOf(text: string | undefined): Level {
  if (text === undefined || text === '') return 'warn';
  const level = LEVELS.find((name) => name === text);
  if (level === undefined) throw usage(`OSL_LOG_LEVEL must be one of ${LEVELS.join(', ')}, not \`${text}\``);
  return level;
}

function jsonLog(level: Level): ServiceLog {
  const options = { level, base: { name: 'osl' }, timestamp: pino.stdTimeFunctions.isoTime };
  const log = pino(options, pino.destination({ dest: 2, sync: true }));
  const write =
    (name: Level) =>
    (message: string, fields: Fields = {}): void =>
      log[name](fields, message);
  return Object.freeze({ info: write('info'), warn: write('warn'), error: write('error') });
}

function terminalLog(level: Level): ServiceLog {
  const write =
    (name: Level) =>
    (message: string, fields: Fields = {}): void => {
      if (LEVELS.indexOf(name) > LEVELS.indexOf(level)) return;
      process.stderr.write(`${logLine(name, message, fields)}\n`);
    };
  return Object.freeze({ info: write('info'), warn: write('warn'), error: write('error') });
}

/** `11:42:07 warn  upstream error  connector=demo sqlstate=22012`; of a stack its first line only. */
function logLine(level: Level, message: string, fields: Fields): string {
  const time = new Date().toTimeString().slice(0, 8);
  const whole = process.env['OSL_DEBUG'] === '1';
  const pairs = Object.entries(fields).map(([name, value]) => {
    const text = typeof value === 'string' ? value : JSON.stringify(value);
    return `${name}=${visible(whole ? text : (text.split('\n')[0] ?? ''))}`;
  });
  return [`${time} ${level.padEnd(5)} ${visible(message)}`, ...pairs].join('  ');
}
