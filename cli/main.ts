import { CommanderError } from 'commander';
import { readSetting } from '../src/service/settings/table.js';
import { EXIT, Failure, failureJson, failureOf } from './exit.js';
import { flush, note } from './output.js';
import { program } from './program.js';

/** The command line: `argv` as Node gives it. Ends the process. */
export async function run(argv: readonly string[]): Promise<void> {
  process.stdout.on('error', stopWriting);
  process.stderr.on('error', () => undefined);
  process.on('uncaughtException', fail);
  try {
    const root = await program(wantsJson() ? commanderJson : null, argv[2] ?? '');
    await root.parseAsync([...argv]);
  } catch (error) {
    report(error);
  }
  await flush();
  process.exit();
}

/** True if errors are to be data too. */
function wantsJson(): boolean {
  const words = process.argv.slice(2);
  const end = words.indexOf('--');
  return words.slice(0, end < 0 ? words.length : end).includes('--json');
}

function commanderJson(text: string): string {
  return `${failureJson(new Failure(EXIT.usage, text.trim()))}\n`;
}

/** Says what went wrong, in a line or with its place, and sets the exit status. Commander has said its own. */
function report(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return;
  }
  const failure = failureOf(error);
  note(wantsJson() ? failureJson(failure) : failure.message);
  if (readSetting('OSL_DEBUG')) note(error instanceof Error ? (error.stack ?? '') : String(error));
  process.exitCode = failure.exit;
}

function fail(error: unknown): void {
  report(error);
  process.exit();
}

/** Whoever read has gone, as `head` does: nothing is left to do. Anything else is a disk that takes no more. */
function stopWriting(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  fail(error);
}
