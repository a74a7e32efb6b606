import { createHash } from 'node:crypto';
import { relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { version } from '../src/base/package-root.js';
import { CODES, type Diagnostic } from '../src/model/manifest/index.js';

const NAMES: ReadonlyMap<string, string> = new Map(Object.entries(CODES).map(([name, code]) => [code, name]));

/**
 * Returns a SARIF 2.1.0 log of one run. Lines and columns are one-based, columns count UTF-16 code units, and ends are
 * exclusive. Files below the current folder have relative URIs.
 */
export function sarifLog(diagnostics: readonly Diagnostic[]) {
  const codes = [...new Set(diagnostics.map((d) => d.code))].sort();
  return sarifRun(
    codes.map(ruleOf),
    diagnostics.map((d) => resultOf(d, codes.indexOf(d.code))),
  );
}

/** Returns a SARIF 2.1.0 log of one run with these `reportingDescriptor`s and `result`s. */
export function sarifRun(rules: readonly object[], results: readonly object[]) {
  const driver = { name: 'osl', version: version(), semanticVersion: version(), rules };
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, columnKind: 'utf16CodeUnits', results }],
  };
}

interface LogicalFinding {
  readonly code: string;
  /** Index of the rule in the log. */
  readonly index: number;
  readonly level: 'error' | 'warning' | 'note';
  readonly text: string;
  readonly place: { readonly fullyQualifiedName: string; readonly kind: string };
  readonly properties: Readonly<Record<string, unknown>>;
}

/** Creates a result about an object that is not in a file. The fingerprint does not depend on the wording. */
export function logicalResult({ code, index, level, text, place, properties }: LogicalFinding) {
  return {
    ruleId: code,
    ruleIndex: index,
    level,
    message: { text },
    locations: [{ logicalLocations: [place] }],
    partialFingerprints: { 'osl/v1': digest(`${code}\n${place.kind}\n${place.fullyQualifiedName}`) },
    properties,
  };
}

function ruleOf(id: string) {
  const name = NAMES.get(id);
  const words =
    name?.replace(/[A-Z]/g, (c) => ` ${c.toLowerCase()}`) ??
    (/^[A-Z]/.test(id) ? 'fault of a policy' : id.replaceAll('_', ' '));
  return { id, ...(name === undefined ? {} : { name }), shortDescription: { text: words } };
}

function resultOf({ code, severity, file, range, path, message, hint }: Diagnostic, ruleIndex: number) {
  const region = {
    startLine: range.start.line,
    startColumn: range.start.column,
    endLine: range.end.line,
    endColumn: range.end.column,
  };
  const place = { physicalLocation: { artifactLocation: { uri: uriOf(file) }, region } };
  const logical = path === '' ? {} : { logicalLocations: [{ fullyQualifiedName: path }] };
  return {
    ruleId: code,
    ruleIndex,
    level: severity,
    message: { text: hint === null ? message : `${message} (${hint})` },
    locations: [{ ...place, ...logical }],
    // Does not change when lines move.
    partialFingerprints: { 'osl/v1': digest(`${code}\n${path}\n${message}`) },
    properties: { path, hint },
  };
}

function uriOf(file: string): string {
  const near = relative(process.cwd(), file);
  if (near.startsWith('..') || near === '') return pathToFileURL(file).href;
  return near.split(/[\\/]/).map(encodeURIComponent).join('/');
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex').slice(0, 32);
}
