import type { Schema } from '../../../../../clients/typescript/types.js';
import { answerWith } from '../../../parts/thread.js';
import { placesOf } from './layout.js';
import { MapStore } from './map-store.js';
import type { DrawnPicture, MapQuestions } from './protocol.js';

// Worker thread of the map: parses schemas of any size, searches and compares them, and lays out pictures.

const keeper = new MapStore();

answerWith<MapQuestions>({
  // The gateway's OpenAPI document declares this type for the response.
  load: ({ side, body }) => keeper.load(side, JSON.parse(new TextDecoder().decode(body)) as Schema),
  forget: () => keeper.forget(),
  draw: drawn,
  search: ({ term, most }) => keeper.search(term, most),
  details: ({ id }) => keeper.details(id),
  changes: ({ most }) => keeper.changes(most),
});

function drawn({ scope, kinds, ratio }: MapQuestions['draw']['ask']): DrawnPicture {
  const picture = keeper.picture(scope, kinds);
  const ids = picture.nodes.map((node) => node.id);
  const seen = { first: keeper.seenBy('first', ids), second: keeper.seenBy('second', ids) };
  return { ...picture, places: placesOf(picture, ratio), seen };
}
