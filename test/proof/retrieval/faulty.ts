import { register } from 'node:module';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { MUTANTS } from './mutants.js';

/** Which fault is on is the value of this global; none where it is empty. */
const ON = 'oslFault';

/** Where `file` of an edit lies, as a URL. */
function urlOf(file: string): string {
  const root = new URL('../../../../', import.meta.url);
  const path = file.startsWith('@')
    ? `compiler/dist/${file.slice(1)}.js`
    : `dist/src/ask/data/runtime/${file}.js`;
  return pathToFileURL(fileURLToPath(new URL(path, root))).href;
}

/** Of each file the texts of the mutants, and what stands there instead: itself while none of their faults is on. */
function changes(): ReadonlyMap<string, ReadonlyMap<string, string>> {
  const files = new Map<string, Map<string, string>>();
  for (const { fault, edits } of MUTANTS)
    for (const { file, from, to } of edits) {
      const url = urlOf(file);
      const texts = files.get(url) ?? new Map<string, string>();
      files.set(url, texts.set(from, choice(fault, to, texts.get(from) ?? asPart(from))));
    }
  return files;
}

function choice(fault: string, to: string, otherwise: string): string {
  const isOn = `globalThis.${ON} === ${JSON.stringify(fault)}`;
  if (to.endsWith(';')) return `if (${isOn}) { ${to} } else { ${otherwise} }`;
  return otherwise.startsWith('...')
    ? `...(${isOn} ? [${to}] : [${otherwise}])`
    : `(${isOn} ? ${to} : ${otherwise})`;
}

/** Arguments stand in a list of their own. */
function asPart(from: string): string {
  return /^[\w.]+, /.test(from) ? `...[${from}]` : from;
}

/** From now on modules are loaded with all faults in them, none of which is on. */
export function loadFaults(): void {
  const data = [...changes()].map(([url, texts]) => [url, [...texts]] as const);
  register(new URL('./faulty-hooks.js', import.meta.url), { data });
}

/** @param fault empty for none */
export function turnOn(fault: string): void {
  Object.assign(globalThis, { [ON]: fault });
}
