import { fieldsOf, listOf, membersOf, type ReplyFields, textOf } from './output.js';

export function differenceLines(diff: unknown): readonly string[] {
  const { changes, access, needs_restart } = fieldsOf(diff);
  const parts = membersOf(changes).map(changeText);
  const roles = membersOf(access).flatMap(roleLines);
  return [
    ...(parts.length === 0 ? ['nothing changes'] : parts),
    ...(roles.length === 0 ? ['nobody gains or loses access'] : roles),
    ...(needs_restart === true ? ['connectors change: the server must be started anew'] : []),
  ];
}

export function policyDifferenceLines(diff: unknown): readonly string[] {
  const { access, subjects, sections } = fieldsOf(diff);
  const lines = [
    ...membersOf(subjects).flatMap(subjectLines),
    ...membersOf(access).flatMap(roleLines),
    ...listOf(sections).map((name) => `~ ${name}`),
  ];
  return lines.length === 0 ? ['nothing changes'] : lines;
}

function subjectLines({ subject, gains, loses, differs }: ReplyFields): readonly string[] {
  return [
    `subject ${textOf(subject)}`,
    ...listOf(gains).map((right) => `  gains ${right}`),
    ...listOf(loses).map((right) => `  loses ${right}`),
    ...listOf(differs).map((what) => `  differs ${what}`),
  ];
}

export function diagnosticLines(diagnostics: unknown, file: string): readonly string[] {
  return membersOf(diagnostics).flatMap(({ code, document, path, range, message, hint }) => {
    const { line, column } = fieldsOf(fieldsOf(range)['start']);
    const place =
      line === undefined
        ? `${textOf(document)} ${textOf(path)}`.trimEnd()
        : `${file}:${textOf(line)}:${textOf(column)}`;
    const told = `${place}: error ${textOf(code)} ${textOf(message)}`;
    return typeof hint === 'string' ? [told, `  hint: ${textOf(hint)}`] : [told];
  });
}

const SIGNS: Readonly<Record<string, string>> = { added: '+', removed: '-', changed: '~' };

function changeText({ change, kind, name, what }: ReplyFields): string {
  const members = listOf(what);
  const sign = SIGNS[textOf(change)] ?? '?';
  return `${sign} ${textOf(kind)} ${textOf(name)}${members.length === 0 ? '' : `: ${members.join(', ')}`}`;
}

function roleLines({ role, subjects, changes }: ReplyFields): readonly string[] {
  const count = textOf(fieldsOf(subjects)['count']);
  const who = `${count} subject${count === '1' ? '' : 's'}`;
  return [`role ${textOf(role)} (${who})`, ...membersOf(changes).map((c) => `  ${accessText(c)}`)];
}

function accessText({ object, effect, before, after }: ReplyFields): string {
  return `${textOf(effect)} ${textOf(object)}: ${visibilityText(before)} -> ${visibilityText(after)}`;
}

function visibilityText(visibility: unknown): string {
  const { access, reads } = fieldsOf(visibility);
  return access === undefined ? 'nothing' : `${textOf(access)} (${textOf(reads)})`;
}
