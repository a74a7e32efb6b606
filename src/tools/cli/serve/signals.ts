import { closeSync, openSync } from 'node:fs';

export interface SignalHandlers {
  /** SIGHUP of a running server. */
  reload(): void;
  /** A second Ctrl-C or SIGTERM. */
  force(): void;
}

/** npm passes Ctrl-C on to a process that the terminal has already told: that is one Ctrl-C, not two. */
const SAME_PRESS_MS = 250;

/** Resolves at the first SIGINT or SIGTERM; handlers stay in place for what comes after. */
export function untilToldToStop(handlers: SignalHandlers): Promise<void> {
  return new Promise((resolve) => {
    let first = 0;
    const stop = (): void => {
      const now = Date.now();
      if (first === 0) {
        first = now;
        resolve();
      } else if (now - first > SAME_PRESS_MS) handlers.force();
    };
    process.on('SIGINT', stop);
    process.on('SIGTERM', stop);
    const onTerminal = process.stdout.isTTY || process.stderr.isTTY;
    process.on('SIGHUP', () => {
      if (onTerminal && !hasTerminal()) {
        // Node 20 ends in an abort, and a core file, where it cannot put its terminal back in order.
        process.once('exit', () => process.kill(process.pid, 'SIGKILL'));
        stop();
      } else handlers.reload();
    });
  });
}

/** SIGHUP also says that the terminal was closed; then there is none any more. */
function hasTerminal(): boolean {
  try {
    closeSync(openSync('/dev/tty', 'r'));
    return true;
  } catch {
    return false;
  }
}
