#include "agent/http/throttle.h"

static struct throttle_place *find(struct throttle *throttle, uint64_t key)
{
	for (size_t i = 0; i < throttle->count; i++)
		if (throttle->places[i].key == key)
			return &throttle->places[i];
	return NULL;
}

int64_t throttle_pause(const struct throttle *throttle, uint64_t key, int64_t now)
{
	for (size_t i = 0; i < throttle->count; i++)
		if (throttle->places[i].key == key && throttle->places[i].until > now)
			return throttle->places[i].until - now;
	return 0;
}

unsigned throttle_failed(struct throttle *throttle, uint64_t key, int64_t now)
{
	struct throttle_place *place = find(throttle, key);
	int64_t pause = 0;

	if (!place) { /* a free place, or that of the pause that ends first */
		place = throttle->places;
		if (throttle->count < THROTTLE_PLACES)
			place = &throttle->places[throttle->count++];
		else
			for (size_t i = 1; i < throttle->count; i++)
				if (throttle->places[i].until < place->until)
					place = &throttle->places[i];
		*place = (struct throttle_place){.key = key};
	} else if (place->until + THROTTLE_FORGET <= now) {
		place->failures = 0;
	}
	place->failures++;
	if (place->failures > throttle->free) {
		unsigned doublings = place->failures - throttle->free - 1;

		pause = doublings < 4 ? (int64_t)THROTTLE_FIRST << doublings : THROTTLE_LONGEST;
	}
	place->until = now + pause;
	return place->failures;
}

void throttle_succeeded(struct throttle *throttle, uint64_t key)
{
	struct throttle_place *place = find(throttle, key);

	if (place)
		*place = throttle->places[--throttle->count];
}
