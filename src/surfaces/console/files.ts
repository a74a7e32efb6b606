import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';

/** A file of the built console. */
export interface ConsoleFile {
  readonly type: string;
  /** True if its name contains a hash of its content. */
  readonly lasting: boolean;
  content(): Promise<ConsoleContent>;
}

interface ConsoleContent {
  readonly bytes: Buffer;
  readonly gzipped: Buffer;
  /** Of the uncompressed content. */
  readonly etag: string;
}

/** By path in the folder: `assets/main-D4f2.js`. */
export type ConsoleFiles = ReadonlyMap<string, ConsoleFile>;

const TYPES: ReadonlyMap<string, string> = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.svg', 'image/svg+xml'],
  ['.woff2', 'font/woff2'],
]);

/** Vite puts files with a content hash in their names here. */
const HASHED = 'assets/';

/**
 * Files of the built console, listed once: later files are not served, and request paths never reach the file system.
 * Empty if the console is not built.
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
