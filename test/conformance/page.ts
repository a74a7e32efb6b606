import { CONTRACT, type RuleId } from './contract.js';
import { LEVELS, levelOf, metLevels, RULES } from './levels.js';
import type { State } from './state.js';
import { NOTES, stateOf } from './states.js';

/** `docs/conformance.md`. */
export function conformancePage(): string {
  const met = new Set<string>(metLevels());
  const levels = LEVELS.map((level) => {
    const rules = RULES.filter((id) => levelOf(id) === level);
    const proved = rules.filter((id) => !['unmet', 'untestable'].includes(stateOf(id).kind));
    const unmet = rules.filter((id) => stateOf(id).kind === 'unmet').map((id) => `\`${id}\``);
    const cells = [level, met.has(level) ? 'yes' : 'no', String(proved.length), unmet.join(', ') || 'none'];
    return `| ${cells.join(' | ')} |`;
  });
  const rules = RULES.map(
    (id) => `| \`${id}\` | ${escaped(CONTRACT[id])} | ${escaped(said(id, stateOf(id)) + noteOn(id))} |`,
  );
  return `${HEAD}\n${levels.join('\n')}\n\n${RULES_HEAD}\n${rules.join('\n')}\n`;
}

function said(id: RuleId, state: State): string {
  switch (state.kind) {
    case 'checked':
      return `proved by \`test/conformance\`, ${id}`;
    case 'same':
      return `proved by \`test/conformance\`, ${state.as}`;
    case 'tested':
      return `proved by \`${state.file}\`: ${state.titles.map((title) => `“${title}”`).join(', ')}`;
    case 'untestable':
      return `not testable: ${state.why}`;
    case 'unmet':
      return `**not met**: ${state.why}`;
  }
}

function noteOn(id: RuleId): string {
  const note = NOTES[id];
  return note === undefined ? '' : `; ${note}`;
}

/** Text for the cell of a table. */
function escaped(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('<', '&lt;');
}

const HEAD = `# Conformance

What the interface contract says, sentence by sentence and row by row, and what is known of each. The page is written from \`test/conformance\`, whose checks ask one running service.

A level is a group of rules. It is declared, and \`GET /osl/conformance\` lists it, only where every rule of it that can be tested is proved.

| level | declared | rules proved | rules not met |
|---|---|---|---|`;

const RULES_HEAD = `## Rules

| id | rule | state |
|---|---|---|`;
