import { singleQuoted } from '../serve/invocation.js';
import type { Offer } from './tree.js';

/** An offer as `_osl_value` leaves it in `offer`: its kind, a colon, and the choices. */
export function offerText(offer: Offer): string {
  return `${offer.kind}:${choicesOf(offer)}`;
}

/** An offer as the two words that `_osl_offer` takes. */
export function offerWords(offer: Offer): string {
  return `${offer.kind} ${singleQuoted(choicesOf(offer))}`;
}

function choicesOf(offer: Offer): string {
  return offer.kind === 'choices' ? offer.choices.join(' ') : '';
}
