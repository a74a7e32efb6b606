import type { Node } from '@pgsql/types';
import { type Place, report } from './source.js';
import { divides } from './sql/expression.js';

/** Reports where `node` divides metrics: most other tools do it as their database does. */
export function reportDivision(node: Node, place: Place): void {
  if (divides(node))
    report(
      place,
      'approximated',
      'a division gives fractions of whole numbers here, and NULL for a division by zero',
    );
}
