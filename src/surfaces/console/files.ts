import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** A file of the built console, with what a browser is told of it. */
export interface ConsoleFile {
  readonly type: string;
  /** Whether its name says what is in it, so that it never changes under that name. */
  readonly lasting: boolean;
  content(): Promise<ConsoleContent>;
}

interface ConsoleContent {
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  /** Of what is in it, whichever way it is encoded. */
  readonly etag: string;
}

/** By its name in the folder, with slashes: `assets/main-D4f2.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.woff2', 'font/woff2'],
]);

/** What Vite puts there has a hash of its content in its name. */
const HASHED = 'assets/';

/**
 * The files of the built console, as they are in `folder` now: what comes later is not served, and no name of a request
 * is ever made a path. Empty where the console is not built.
 */
export function consoleFiles(folder: string): ConsoleFiles {
  const names = namesIn(folder, '').filter((name) => TYPES.has(extname(name)));
  return new Map(names.map((name) => [name, fileOf(folder, name)]));
}

function namesIn(folder: string, below: string): readonly string[] {
  return entriesOf(join(folder, below)).flatMap((entry) => {
    const name = `${below}${entry.name}`;
    if (entry.isDirectory()) return namesIn(folder, `${name}/`);
    return entry.isFile() ? [name] : [];
  });
}

function entriesOf(folder: string) {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // not built
  }
}

function fileOf(folder: string, name: string): ConsoleFile {
  let read: Promise<ConsoleContent> | null = null;
  return {
    type: TYPES.get(extname(name)) ?? 'application/octet-stream',
    lasting: name.startsWith(HASHED),
    content: () => {
      read ??= contentOf(join(folder, name)).catch((error: unknown) => {
        read = null;
        throw error;
      });
      return read;
    },
  };
}

async function contentOf(path: string): Promise<ConsoleContent> {
  const bytes = readFileSync(path);
  const etag = `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  return { bytes, gzipped: await promisify(gzip)(bytes), etag };
}
