import { CommanderError } from 'commander';
import { disableWasmOptimization } from '../src/base/threads/thread.js';
import { readSetting } from '../src/service/settings/table.js';
import { EXIT, Failure, failureJson, toFailure } from './exit.js';
import { flush, note, wantsJson } from './output.js';
import { program } from './program.js';

/** Runs the command line `argv` and ends the process. */
export async function run(argv: readonly string[]): Promise<void> {
  process.stdout.on('error', stopWriting);
  process.stderr.on('error', () => undefined);
  process.on('uncaughtException', fail);
  disableWasmOptimization();
  try {
    const root = await program(wantsJson() ? commanderJson : null, argv[2] ?? '');
    await root.parseAsync([...argv]);
  } catch (error) {
    report(error);
  }
  await flush();
  process.exit();
}

function commanderJson(text: string): string {
  return `${failureJson(new Failure(EXIT.usage, text.trim()))}\n`;
}

/** Prints an error and sets the exit status. Commander has already printed its own errors. */
function report(error: unknown): void {
  if (error instanceof CommanderError) {
    process.exitCode = error.exitCode === 0 ? EXIT.ok : EXIT.usage;
    return;
  }
  const failure = toFailure(error);
  note(wantsJson() ? failureJson(failure) : failure.message);
  if (readSetting('OSL_DEBUG')) note(error instanceof Error ? (error.stack ?? '') : String(error));
  process.exitCode = failure.exit;
}

function fail(error: unknown): void {
  report(error);
  process.exit();
}

/**
 * EPIPE means that the reader, such as `head`, has closed the pipe: success. Any other error, such as a full disk, is
 * a failure.
 */
function stopWriting(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(EXIT.ok);
  fail(error);
}
