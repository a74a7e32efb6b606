import { join } from 'node:path';
import { test } from 'tap';
import { RULE_GROUPS, RULES } from '../../cli/rls/rules/index.js';
import { keptTable } from './kept-table.js';

const BEGIN = '<!-- rules: OSL_WRITE_DOCS=1 node dist/test/docs/rls-rules.test.js -->';
const END = '<!-- end of rules -->';

test('docs/rls-check.md has the rules that the check has', (t) => {
  const lines = RULE_GROUPS.flatMap(([heading, rules], i) => [
    ...(i === 0 ? [] : ['']),
    `### ${heading}`,
    '',
    '| code | severity | fault | what follows | how to mend it |',
    '| --- | --- | --- | --- | --- |',
    ...rules
      .toSorted((a, b) => (a.code < b.code ? -1 : 1))
      .map(({ code, severity, title, consequence, mend }) => {
        return `| ${[code, severity, title, consequence, mend].map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
      }),
  ]);
  keptTable(t, join(process.cwd(), 'docs', 'rls-check.md'), [BEGIN, END], lines);
  t.end();
});

test('rules have codes of their own, and their texts one form', (t) => {
  t.equal(new Set(RULES.map(({ code }) => code)).size, RULES.length);
  for (const { code, title, consequence, mend } of RULES) {
    t.match(code, /^RLS\d{3}$/);
    t.match(
      title,
      /^[^A-Z](?!.*\.$)|^(?:TRUNCATE|TRIGGER|OR|INSERT|UPDATE|LEAKPROOF|SECURITY) /,
      `${code}: a title is no sentence`,
    );
    t.match(consequence, /^[A-Z].*[^.]\.$/, `${code}: a consequence is one sentence`);
    t.notMatch(consequence, /\. /, `${code}: a consequence is one sentence`);
    t.match(mend, /^[a-z].*[^.]$/, `${code}: advice begins with a verb`);
  }
  t.end();
});
