import { wordsOf } from './words.js';

/** Last words of columns that say how many or how much: such a column identifies nothing, however its values fall. */
const MEASURES = new Set(
  `count counts cnt counter amount amt total totals subtotal sum qty quantity price cost costs fee fees fare charge
  charges revenue turnover sales value balance discount tax vat salary wage income profit margin budget refund credit
  debit deposit payment paid spend spent rent size length width height weight volume bytes distance duration seconds
  minutes hours age score rating rate ratio share percent percentage pct average avg mean median min max stock points
  views clicks visits likes attempts retries`.split(/\s+/),
);
/** First words that say the same: `num_orders`, `total_weight`. */
const LEADING = new Set('count num total sum avg average mean min max'.split(' '));

/** Of those, the ones that are money. */
const MONEY = new Set(
  `amount amt total subtotal price cost costs fee fees fare charge charges revenue turnover sales balance discount tax
  vat salary wage income profit margin budget refund credit debit deposit payment paid spend spent rent gross net eur
  usd gbp chf`.split(/\s+/),
);
/** Money for each of something: to add it up means nothing. */
const EACH = new Set(['price', 'fare', 'rent', 'salary', 'wage']);

/** Whether a column counts or measures something, by its name. */
export function isMeasure(column: string): boolean {
  const words = wordsOf(column);
  const [first = ''] = words;
  return MEASURES.has(words.at(-1) ?? '') || (words.length > 1 && LEADING.has(first));
}

/** What metrics a number of this name makes: `null` where it is no money. */
export function moneyOf(column: string): 'sum and average' | 'average' | null {
  const words = wordsOf(column);
  if (words.some((word) => /^(count|id|no|number|code|type|currency|rate|pct|percent)$/.test(word)))
    return null;
  if (words.some((word) => EACH.has(word))) return 'average';
  return words.some((word) => MONEY.has(word)) ? 'sum and average' : null;
}
