/** What a name of the model looks like, as a pattern of JSON Schema. */
export const NAME_PATTERN = '^(?!__)[A-Za-z_][A-Za-z0-9_]{0,62}$';

const NAME = new RegExp(NAME_PATTERN);

/** Whether `text` can be a name of the model: of an entity, a column, a tenant or a role. */
export function isName(text: string): boolean {
  return NAME.test(text);
}
