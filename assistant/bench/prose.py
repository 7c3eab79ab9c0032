"""A fixed piece of plain English on which accuracy is measured.  Written for this file; keep it as it is."""

from __future__ import annotations

TEXT = """\
The ferry to the island leaves at seven in the morning and comes back at five in the afternoon. In winter
there is only one crossing a day, and when the wind blows from the north there is none at all. People who live
on the island know this, so they keep flour, oil, candles and a good supply of books at home. Visitors learn
it the hard way. Every year a few of them stand on the pier with their bags, look at the grey water, and ask
when the next boat will come. The harbour master, a patient woman named Ruth, tells them that it will come
when the sea allows it, and then she offers them tea.

Her office is a small wooden house with one window. On the wall there is a chart of the bay, a clock that is
always four minutes fast, and a photograph of her father, who had the same job before her. He taught her to
read the weather from the colour of the hills. If the far hills look close and blue, there will be rain before
evening. If they are pale and far away, the next day will be dry. She trusts the hills more than the radio,
although she listens to both.

One morning in March a young man came into the office and asked whether he could leave a box with her until
the summer. It was about the size of a bread bin, made of dark wood, and it was locked. Ruth asked what was
inside. He said that it was a clock he had built himself, that it was not finished, and that his new flat in
the city was too damp for it. She put the box on the highest shelf, away from the stove, and wrote his name
and the date in the book where she noted everything that was left in her care. Then she gave him tea, because
the ferry was late.

While they waited he told her how a clock keeps time. A weight wants to fall, he said, and a wheel wants to
let it fall all at once. The whole art is to make it fall one small step at a time, and to make every step
take exactly as long as the one before. For this you need something that swings by itself, a pendulum or a
spring, and a little arm that lets one tooth of the wheel pass at every swing. In return the wheel gives the
pendulum a tiny push, so that it never stops. If the push is too strong, the clock runs fast. If it is too
weak, the clock stops in the night when nobody is there to hear it. He had spent two years looking for the
right push.

Ruth thought about this after he had gone. It seemed to her that the ferry was like that as well. The sea
wanted to let everything through at once, or nothing. The timetable let one boat pass in the morning and one
in the afternoon, and the people who came and went gave the island the small push it needed to go on. Too
many, and it would no longer be the place they had come to see. Too few, and the school would close, and then
the shop, and in the end somebody would turn off the lamp at the end of the pier.

In May the weather turned warm. The first tourists arrived with bicycles, and the owner of the shop painted
her door yellow. Ruth had to answer the same three questions forty times a day. Where is the beach? Is there a
bank on the island? Can we drink the water? She answered them all in the same friendly voice, since every
person asked them only once. In the evening, when the last boat had gone, she sometimes took the box from the
shelf and held it to her ear. It made no sound.

At the end of July the young man had not come back. She looked for his name in the book, found the number of
his telephone and called it, but nobody answered. In August she wrote a letter. In September the letter came
back with a stamp on it which said that the person was unknown at this address. By then the bicycles were
gone, the yellow door had faded a little, and the far hills looked close and blue nearly every morning.

She did not open the box that autumn, and she did not open it in winter either. It was not hers. But on the
shortest day of the year, when the wind had blown from the north for a week and nobody had come into the
office for three days, she heard a quiet, regular tapping from the highest shelf. She stood still and counted.
Sixty taps took exactly one minute by the clock on the wall, the one that was always four minutes fast. She
took down the box, put it on the table, and sat beside it until it was dark, listening. Then she moved the
hands of the old clock back by four minutes, for the first time in thirty years, and went out to light the
lamp.
"""
