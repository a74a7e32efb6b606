import { stat } from 'node:fs/promises';
import { codeOf } from '../../base/thrown.js';

/** Polling interval, ms. */
const LOOK_MS = 250;

/**
 * Calls `changed` when a file has changed and then stayed the same for one poll, whether it is written in pieces,
 * replaced, or a link to it changes. A file written since this process started counts as changed. Returns a function
 * that stops it.
 */
export function watchFile(file: string, changed: () => void): () => void {
  let known: string | null = null;
  let pending: string | null = null;
  let looking = false;
  const look = async (): Promise<void> => {
    if (looking) return;
    looking = true;
    const { mark: now, since } = await stateOf(file);
    looking = false;
    known ??= since >= performance.timeOrigin ? '' : now;
    if (now === known) pending = null;
    else if (now === pending) {
      known = now;
      pending = null;
      changed();
    } else pending = now;
  };
  void look();
  const timer = setInterval(() => void look(), LOOK_MS).unref();
  return () => clearInterval(timer);
}

/** State of a file, and its change time, ms since the epoch. */
async function stateOf(file: string): Promise<{ readonly mark: string; readonly since: number }> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return { mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '), since: Number(ctimeNs / 1_000_000n) };
  } catch (error) {
    return { mark: `none: ${codeOf(error)}`, since: Number.POSITIVE_INFINITY };
  }
}
