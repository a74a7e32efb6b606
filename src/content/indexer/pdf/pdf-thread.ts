import { createHash } from 'node:crypto';
import type { Worker } from 'node:worker_threads';
import { LRUCache } from 'lru-cache';
import { answerOf, startThread, type ThreadFailure } from '../../../base/threads/thread.js';
import { ContentError } from '../../content-error.js';

/** The reason a document has no text. */
export type PdfFault = 'broken' | 'encrypted' | 'too long' | 'late' | 'memory';

/** Messages from the thread: one after loading the package, then one per document. */
export type FromPdf =
  | { readonly kind: 'opened' }
  | { readonly kind: 'notInstalled' }
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'fault'; readonly fault: PdfFault };

/** Limits for reading one document. */
export interface PdfLimits {
  readonly deadlineMs: number;
  /** Maximum size of the thread's JavaScript heap. */
  readonly heapMb: number;
  /** Maximum growth of the whole process, since buffers are outside the heap. */
  readonly growthMb: number;
  /** Maximum length of the text in UTF-16 code units. */
  readonly mostChars: number;
}

const LIMITS: PdfLimits = { deadlineMs: 60_000, heapMb: 512, growthMb: 1_024, mostChars: 10_000_000 };

const PDF_PACKAGE = 'unpdf';

/** Text of a document with form feeds between pages, or the reason why it has no text. */
export type PdfText = { readonly text: string } | { readonly fault: PdfFault };

/**
 * Size of the text cache in UTF-16 code units. Caching pays off because several facet versions and indexing rounds read
 * the same documents.
 */
const REMEMBERED = 33_554_432;
const GROWTH_CHECK_MS = 50;

/** Reads PDFs in a separate thread, one at a time. If the thread has ended, it is restarted. */
export class PdfThread {
  readonly #limits: PdfLimits;
  readonly #package: string;
  readonly #known = new LRUCache<string, PdfText>({
    maxSize: REMEMBERED,
    sizeCalculation: (read) => ('text' in read ? read.text.length : 0) + 200,
  });
  #worker: Worker | null = null;

  constructor(limits: Partial<PdfLimits> = {}, name = PDF_PACKAGE) {
    this.#limits = { ...LIMITS, ...limits };
    this.#package = name;
  }

  /** @throws ContentError `notInstalled` */
  async read(bytes: Uint8Array): Promise<PdfText> {
    const key = createHash('sha256').update(bytes).digest('base64');
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const worker = this.#worker ?? (await this.#begin());
    const answered = this.#answer(worker, this.#limits, (said) =>
      said.kind === 'text' ? { text: said.text } : said.kind === 'fault' ? { fault: said.fault } : null,
    );
    worker.postMessage(bytes);
    const read = await answered.catch((error: unknown): PdfText => {
      if (error instanceof PdfThreadError) return { fault: error.why === 'failed' ? 'broken' : error.why };
      throw error;
    });
    // A timeout also depends on the current load, so it is not cached.
    if (!('fault' in read && read.fault === 'late')) this.#known.set(key, read);
    return read;
  }

  async end(): Promise<void> {
    const worker = this.#worker;
    this.#worker = null;
    await worker?.terminate();
  }

  async #begin(): Promise<Worker> {
    const { heapMb, mostChars } = this.#limits;
    const file = new URL('./pdf-worker.js', import.meta.url);
    const data = { name: this.#package, mostChars };
    const worker = startThread(file, { maxOldGenerationSizeMb: heapMb }, data);
    this.#worker = worker;
    await this.#answer(worker, LIMITS, (said) => {
      if (said.kind === 'notInstalled') throw notInstalled(this.#package);
      return said.kind === 'opened' ? true : null;
    });
    return worker;
  }

  /** Waits for the next message, within time and memory limits. If none arrives, the thread is terminated. */
  async #answer<T>(
    worker: Worker,
    { deadlineMs, growthMb }: PdfLimits,
    read: (said: FromPdf) => T | null,
  ): Promise<T> {
    const most = process.memoryUsage.rss() + growthMb * 1_048_576;
    let grown = false;
    const watch = setInterval(() => {
      grown ||= process.memoryUsage.rss() > most;
      if (grown) void worker.terminate();
    }, GROWTH_CHECK_MS);
    try {
      return await answerOf(
        worker,
        deadlineMs,
        (said: FromPdf) => {
          const value = read(said);
          return value === null ? null : { value };
        },
        (why) => new PdfThreadError(grown ? 'memory' : why),
      );
    } catch (error) {
      this.#worker = null;
      await worker.terminate();
      throw error;
    } finally {
      clearInterval(watch);
    }
  }
}

class PdfThreadError extends Error {
  readonly why: ThreadFailure;

  constructor(why: ThreadFailure) {
    super(`the thread that reads PDFs ended: ${why}`);
    this.why = why;
  }
}

function notInstalled(name: string): ContentError {
  return new ContentError(
    'notInstalled',
    `\`format: pdf\` needs the package \`${name}\`, which is not installed`,
    `run \`npm install ${name}\` beside the gateway`,
  );
}
