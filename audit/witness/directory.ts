import { randomBytes } from 'node:crypto';
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { nameOf, type Witness, type WitnessedSize } from './witness.js';

/** A directory, as of another machine or of a medium that is written once. */
export function directoryWitness(dir: string): Witness {
  return {
    name: dir,
    keep: (checkpoint) => keep(dir, checkpoint),
    kept: async () => {
      const writers = await readdir(dir, { withFileTypes: true });
      const notes: string[] = [];
      for (const writer of writers.filter((entry) => entry.isDirectory())) {
        const names = (await readdir(join(dir, writer.name))).filter((name) => name.endsWith('.note'));
        for (const name of names.sort()) notes.push(await readFile(join(dir, writer.name, name), 'utf8'));
      }
      return notes;
    },
    close: async () => undefined,
  };
}

/** Written whole under a name that is given once. */
async function keep(dir: string, checkpoint: WitnessedSize): Promise<void> {
  const path = join(dir, nameOf(checkpoint));
  await mkdir(dirname(path), { recursive: true });
  const making = `${path}.${randomBytes(4).toString('hex')}`;
  const handle = await open(making, 'wx', 0o644);
  try {
    await handle.writeFile(checkpoint.note);
    await handle.sync();
  } finally {
    await handle.close();
  }
  try {
    await link(making, path);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
  } finally {
    await rm(making, { force: true });
  }
}
