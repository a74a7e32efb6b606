import { stat } from 'node:fs/promises';
import { codeOf } from '../../base/thrown.js';

/** How often the file is looked at, ms: half of it passes, on average, before a change is seen. */
const LOOK_MS = 250;

/**
 * Calls `changed` once a file is another than it was, and has stayed so for one look: whoever writes it in pieces, replaces
 * it, or turns the link that leads to it. A file that was written since this process began may be another than the process
 * read at its start. Returns what ends it.
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

/** A state of a file, and since when it is in that state, ms since 1970. */
async function stateOf(file: string): Promise<{ readonly mark: string; readonly since: number }> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(file, { bigint: true });
    return { mark: [dev, ino, size, mtimeNs, ctimeNs].join(' '), since: Number(ctimeNs / 1_000_000n) };
  } catch (error) {
    return { mark: `none: ${codeOf(error)}`, since: Number.POSITIVE_INFINITY };
  }
}
