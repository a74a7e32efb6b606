import { parentPort, workerData } from 'node:worker_threads';
import type { FromPdf } from './pdf-thread.js';

/** Worker thread that parses PDFs, isolated because the author of a PDF controls the cost of parsing it. */

const port = parentPort;
if (port === null) throw new Error('this file is the main module of a worker');

const say = (message: FromPdf): void => port.postMessage(message);

interface Pdf {
  getDocumentProxy(data: Uint8Array, options: Readonly<Record<string, unknown>>): Promise<PdfDocument>;
}

interface PdfDocument {
  readonly numPages: number;
  getPage(number: number): Promise<PdfPage>;
  destroy(): Promise<void>;
}

interface PdfPage {
  streamTextContent(): ReadableStream<{ readonly items: readonly PdfTextItem[] }>;
  cleanup(): unknown;
}

/** A piece of text, or a structure mark, which has no `str`. */
interface PdfTextItem {
  readonly str?: string;
  readonly hasEOL?: boolean;
}

/** Options that stop the library from running code in the document, using installed fonts, and logging warnings. */
const OPTIONS = { isEvalSupported: false, useSystemFonts: false, disableFontFace: true, verbosity: 0 };

class TooLong extends Error {}

/** Returns the text of all pages, separated by form feeds. */
async function textOf(pdf: Pdf, bytes: Uint8Array, mostChars: number): Promise<string> {
  const document = await pdf.getDocumentProxy(bytes, OPTIONS);
  try {
    const pages: string[] = [];
    let left = mostChars;
    for (let number = 1; number <= document.numPages; number++) {
      const text = await pageText(await document.getPage(number), left);
      left -= text.length + 1;
      pages.push(text);
    }
    return pages.join('\f');
  } finally {
    await document.destroy();
  }
}

async function pageText(page: PdfPage, mostChars: number): Promise<string> {
  const parts: string[] = [];
  let left = mostChars;
  // `for await` is avoided: leaving it early would wait until the stream has stopped.
  const reader = page.streamTextContent().getReader();
  for (let next = await reader.read(); !next.done; next = await reader.read()) {
    for (const { str = '', hasEOL = false } of next.value.items) {
      parts.push(hasEOL ? `${str}\n` : str);
      left -= str.length + 1;
      if (left < 0) throw new TooLong();
    }
  }
  page.cleanup();
  // Postgres text cannot contain NUL, and form feeds separate pages here.
  return parts.join('').replaceAll('\0', '').replaceAll('\f', ' ');
}

function faultOf(error: unknown): FromPdf {
  if (error instanceof TooLong) return { kind: 'fault', fault: 'too long' };
  const encrypted = error instanceof Error && error.name === 'PasswordException';
  return { kind: 'fault', fault: encrypted ? 'encrypted' : 'broken' };
}

// The module name is not a literal, because the package is optional and a build without it must type-check.
const { name, mostChars } = workerData as { readonly name: string; readonly mostChars: number };

import(name).then(
  (pdf: Pdf) => {
    port.on('message', (bytes: Uint8Array) => {
      textOf(pdf, bytes, mostChars).then(
        (text) => say({ kind: 'text', text }),
        (error: unknown) => say(faultOf(error)),
      );
    });
    say({ kind: 'opened' });
  },
  () => say({ kind: 'notInstalled' }),
);
