import {
  CODES,
  ManifestProblems,
  type Path,
  parseSource,
  raise,
  type UnplacedDiagnostic,
  type YamlSource,
} from '../src/model/manifest/index.js';
import type { Loss, LossKind } from './account.js';
import { ReadAccount } from './account.js';

/** A text to import; reports name it `file`. */
export interface ImportText {
  readonly file: string;
  readonly text: string;
}

/** Maximum size of a file in UTF-16 units: about ten thousand models. */
const LARGEST = 16 * 1024 * 1024;

/** One file of a foreign format, with the record of what was read. */
export class SourceFile {
  readonly file: string;
  readonly root: unknown;
  readonly account: ReadAccount;
  readonly #source: YamlSource;
  readonly #problems: UnplacedDiagnostic[] = [];

  /** @throws ManifestProblems if the text is not YAML, is too large or too deep, or has a duplicate key */
  constructor({ file, text }: ImportText) {
    if (text.length > LARGEST) throw tooLarge(file);
    this.#source = parseSource(text, file);
    this.file = file;
    this.root = this.#source.value;
    this.account = new ReadAccount(this.#source);
  }

  problem(path: Path, code: string, message: string, hint: string | null = null, onKey = false): void {
    if (this.#problems.length < 100) this.#problems.push({ path, code, message, hint, onKey });
  }

  /** @throws ManifestProblems if a part has the wrong shape */
  check(): void {
    raise(this.#source, this.#problems);
  }
}

function tooLarge(file: string): ManifestProblems {
  const at = Object.freeze({ line: 1, column: 1 });
  const message = `the file is larger than ${LARGEST / 1024 / 1024} MiB`;
  const range = Object.freeze({ start: at, end: at });
  return new ManifestProblems(
    [Object.freeze({ code: CODES.tooLarge, severity: 'error', file, range, path: '', message, hint: null })],
    '',
  );
}

/** A place in a file, for later reports. */
export interface SourcePlace {
  readonly file: SourceFile;
  readonly path: Path;
}

/** Reports at `place`. */
export function report(
  place: SourcePlace,
  kind: LossKind,
  reason: string,
  severity: Loss['severity'] = 'normal',
): void {
  place.file.account.add(place.path, false, kind, reason, severity);
}
